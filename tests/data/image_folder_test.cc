#include "data/formats/image_folder.h"

#include <cstdlib>

#include "tests/data/files.h"
#include "tests/data/image_bytes.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;
using bench::TemporaryFolder;

class ImageFolders : public WithFiles {};

TEST_F(ImageFolders, NumberClassesAndImagesByTheirNames) {
  write("train/dog/b.jpg", jpeg_of(10, 20, 30));
  write("train/dog/a.jpg", jpeg_of(40, 50, 60));
  write("train/cat/z.jpeg", jpeg_of(70, 80, 90));
  write("train/cat/.hidden", "x");
  write("train/README", "not a class");
  write("val/cat/a.jpg", jpeg_of(1, 2, 3));
  const ImageFolder train = list_images(root_, Split::Train).value();
  EXPECT_EQ(train.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(train.files.size(), 3U);
  EXPECT_EQ(train.files[0].path, root_ / "train/cat/z.jpeg");
  EXPECT_EQ(train.files[1].path, root_ / "train/dog/a.jpg");
  EXPECT_EQ(train.files[1].label, 1);
  EXPECT_EQ(list_images(root_, Split::Test).value().files.size(), 1U);
  EXPECT_EQ(list_images(root_, Split::Train, 1).value().files.size(), 2U);

  const LoadedImages loaded = load_images(train).value();
  EXPECT_TRUE(loaded.skipped.empty());
  ASSERT_EQ(loaded.images.size(), 3U);
  EXPECT_EQ(loaded.images.classes(), 2);
  Image image;
  ASSERT_TRUE(loaded.images.decode(2, image).ok());
  EXPECT_EQ(loaded.images.label(2), 1);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.height, 8);
  EXPECT_EQ(image.width, 16);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t i = 0; i < image.plane(); ++i) {
      ASSERT_NEAR(image.pixels[channel * image.plane() + i],
                  10.0 * (1 + static_cast<double>(channel)), 2);
    }
  }
}

TEST_F(ImageFolders, LeaveBrokenImagesOutAndNameThem) {
  const std::string good = noisy_jpeg();
  write("train/a/0.jpg", good.substr(0, good.size() - 100));
  write("train/a/1.jpg", good);
  write("train/a/2.jpg", "");
  write("train/b/3.jpg", "GIF89a");
  write("train/b/4.jpg", good);
  write("train/b/6.jpg", good.substr(0, 200));
  write("train/b/7.jpg", good);
  fs::create_directory(root_ / "train/b/5.jpg");
  const LoadedImages loaded = load_images(list_images(root_, Split::Train).value()).value();
  ASSERT_EQ(loaded.images.size(), 3U) << testing::PrintToString(loaded.skipped);
  EXPECT_EQ(loaded.images.label(0), 0);
  EXPECT_EQ(loaded.images.label(1), 1);
  ASSERT_EQ(loaded.skipped.size(), 5U);
  const std::string train = (root_ / "train").string();
  EXPECT_EQ(loaded.skipped[0],
            train + "/a/0.jpg is a broken JPEG image: Premature end of JPEG file");
  EXPECT_EQ(loaded.skipped[1], train + "/a/2.jpg is empty");
  EXPECT_EQ(loaded.skipped[2], train + "/b/3.jpg is neither a JPEG nor a PNG image");
  EXPECT_EQ(loaded.skipped[3], train + "/b/5.jpg cannot be read: Is a directory");
  EXPECT_EQ(loaded.skipped[4], train + "/b/6.jpg is a broken JPEG image: it has no header");
}

TEST_F(ImageFolders, SayWhatIsMissing) {
  EXPECT_EQ(list_images(root_, Split::Test).status().message(),
            root_.string() + " has no folder test or val with a folder of images for each class");
  write("train/a/0.jpg", "nothing");
  EXPECT_EQ(load_images(list_images(root_, Split::Train).value()).status().message(),
            "none of 1 images can be used: " + (root_ / "train/a/0.jpg").string() +
                " is neither a JPEG nor a PNG image");
  write("train/a/1.jpg", jpeg_of(1, 2, 3));
  write("train/a/2.jpg", jpeg_of(1, 2, 3, 8, 8));
  EXPECT_EQ(load_images(list_images(root_, Split::Train).value()).status().message(),
            (root_ / "train/a/2.jpg").string() +
                " is 8x8 where others are 16x8: bring all images to one size");
}

TEST(Cifar10, IsReadFromJpegFiles) {
  const char* const data = std::getenv("SLUICE_TEST_DATA");
  const fs::path archive = fs::path{data == nullptr ? "" : data} / "cifar10-jpeg.tar.xz";
  if (data == nullptr || !fs::exists(archive)) {
    GTEST_SKIP() << "SLUICE_TEST_DATA names no folder with cifar10-jpeg.tar.xz";
  }
  const TemporaryFolder folder;
  const std::string root = folder.make("cifar10");
  const std::string unpack = "tar -xJf '" + archive.string() + "' -C '" + root + "' test";
  ASSERT_EQ(std::system(unpack.c_str()), 0) << unpack;
  const LoadedImages loaded = load_images(list_images(root, Split::Test).value()).value();
  EXPECT_TRUE(loaded.skipped.empty());
  EXPECT_EQ(loaded.images.size(), 10000U);
  EXPECT_EQ(loaded.classes,
            (std::vector<std::string>{"airplane", "automobile", "bird", "cat", "deer", "dog",
                                      "frog", "horse", "ship", "truck"}));
  EXPECT_EQ(loaded.images.height(), 32);
  EXPECT_EQ(loaded.images.width(), 32);
  // The published mean of the test images is (0.494, 0.485, 0.450) of 255.
  const Normalization statistics = loaded.images.statistics();
  EXPECT_NEAR(statistics.mean[0] / 255, 0.494, 0.002);
  EXPECT_NEAR(statistics.mean[1] / 255, 0.485, 0.002);
  EXPECT_NEAR(statistics.mean[2] / 255, 0.450, 0.002);
}

}  // namespace
}  // namespace sluice::data
