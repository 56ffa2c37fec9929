#include <cstdlib>

#include "data/formats/formats.h"
#include "data/image/viewer.h"
#include "tests/data/files.h"
#include "tests/data/image_bytes.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;
using bench::TemporaryFolder;

class Photographs : public WithFiles {
 protected:
  // Sizes differ; one file is a PNG file named .jpg.
  void write_large() const {
    const auto pixels = noise(std::size_t{90} * 70 * 3);
    write("train/cat/0.jpg", jpeg_of(gradient(100, 80), 100, 80));
    write("train/dog/0.jpg", png_of(pixels.data(), 90, 70, PNG_FORMAT_RGB));
    write("val/cat/0.png", jpeg_of(1, 2, 3));
    write("val/dog/0.png", jpeg_of(4, 5, 6));
  }
  Result<Data> open(const DataOptions& options = {}) const { return open_images(root_, options); }
};

TEST_F(Photographs, AreReadFromTheirFiles) {
  write_large();
  const Data data = open().value();
  EXPECT_EQ(data.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(data.channels, 3);
  EXPECT_EQ(data.height, 0);
  EXPECT_EQ(data.width, 0);
  EXPECT_NEAR(data.normalization.mean.at(0), 123.675, 1e-9);  // ImageNet's
  ImageView stored;
  std::vector<std::uint8_t> buffer;
  ASSERT_TRUE(data.train->read(1, buffer, stored).ok());
  EXPECT_EQ(stored.storage, Storage::File);
  Image image;
  ASSERT_TRUE(data.train->decode(1, image).ok());
  EXPECT_EQ(image.width, 90);
  EXPECT_EQ(image.height, 70);
  EXPECT_EQ(data.train->label(1), 1);
  EXPECT_EQ(data.train->name(1), path("train/dog/0.jpg"));
}

TEST_F(Photographs, DifferentClassesAreAnError) {
  write("train/cat/0.jpg", jpeg_of(1, 2, 3));
  write("train/dog/0.jpg", jpeg_of(1, 2, 3));
  write("test/cat/0.jpg", jpeg_of(1, 2, 3));
  write("test/eel/0.jpg", jpeg_of(1, 2, 3));
  EXPECT_EQ(open().status().message(),
            root_.string() +
                ": training and validation images have different classes: only train "
                "has dog; only the other has eel");
  fs::remove_all(root_ / "test/eel");
  EXPECT_EQ(open().status().message(),
            root_.string() +
                ": training and validation images have different classes: only train "
                "has dog");
}

TEST_F(Photographs, AFolderWithoutImagesIsAnError) {
  fs::create_directories(root_ / "train/cat");
  fs::create_directories(root_ / "test/cat");
  EXPECT_EQ(open().status().message(), root_.string() + " has no training images");
  write("train/cat/0.jpg", jpeg_of(1, 2, 3));
  EXPECT_EQ(open().status().message(), root_.string() + " has no validation images");
}

TEST_F(Photographs, SmallImagesOfOneSizeAreKeptInMemory) {
  for (const std::string name :
       {"train/cat/0", "train/cat/1", "train/dog/0", "test/cat/0", "test/dog/0"}) {
    write(name + ".jpg", jpeg_of(40, 80, 120));
  }
  const Data data = open().value();
  EXPECT_EQ(data.height, 8);
  EXPECT_EQ(data.width, 16);
  EXPECT_NEAR(data.normalization.mean.at(1), 80, 2);
  std::vector<std::uint8_t> buffer;
  ImageView first;
  ASSERT_TRUE(data.train->read(2, buffer, first).ok());
  const std::vector<std::uint8_t> pixels{first.bytes.begin(), first.bytes.end()};
  fs::remove_all(root_ / "train");  // the image is in memory now
  ImageView again;
  ASSERT_TRUE(data.train->read(2, buffer, again).ok());
  EXPECT_EQ(again.storage, Storage::Planes);
  EXPECT_TRUE(std::ranges::equal(again.bytes, pixels));
  Image image;
  ASSERT_TRUE(data.train->decode(2, image).ok());
  EXPECT_EQ(image.pixels, pixels);
  EXPECT_EQ(data.train->read(1, buffer, again).message(),
            path("train/cat/1.jpg") + " cannot be read: No such file or directory");

  write("train/cat/0.jpg", jpeg_of(40, 80, 120));
  write("train/dog/0.jpg", jpeg_of(40, 80, 120));
  EXPECT_EQ(open({.memory_bytes = 100}).value().height, 0);  // too many for that
}

TEST_F(Photographs, AViewIsACentreCropOrARandomCrop) {
  // Red grows to the right, green downwards.
  const std::string file = jpeg_of(gradient(640, 480), 640, 480);
  const std::vector<std::uint8_t> bytes = bytes_of(file);
  const ImageView stored{.storage = Storage::File, .bytes = bytes};
  const Normalization plain{.mean = {0, 0, 0}, .deviation = {1, 1, 1}};
  std::vector<float> out(std::size_t{3} * 32 * 32);
  Viewer centre{{.kind = ViewKind::CentreCrop}, plain, 32, 1};
  ASSERT_TRUE(centre.view(stored, {}, out.data()).ok());
  // The middle 420x420: columns 110 to 530 of 640, rows 30 to 450 of 480.
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      const auto at = static_cast<std::size_t>(y) * 32 + static_cast<std::size_t>(x);
      ASSERT_NEAR(out[at], 255 * (110 + 420 * (x + 0.5) / 32) / 640, 3);
      ASSERT_NEAR(out[1024 + at], 255 * (30 + 420 * (y + 0.5) / 32) / 480, 3);
    }
  }
  Viewer random{{.kind = ViewKind::ResizedCrop}, plain, 32, 1};
  bool mirrored = false;
  bool upright = false;
  for (std::size_t sample = 0; sample < 20; ++sample) {
    ASSERT_TRUE(random.view(stored, {3, sample}, out.data()).ok());
    (out[0] > out[31] ? mirrored : upright) = true;
    const double area =
        std::abs(out[31] - out[0]) / 255 * std::abs(out[1024 + 31 * 32] - out[1024]) / 255;
    EXPECT_GT(area, 0.05);
    EXPECT_LE(area, 1);
  }
  EXPECT_TRUE(mirrored && upright);
}

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

TEST_F(ImageFolders, LeaveOutBrokenImagesAndReportThem) {
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

TEST_F(ImageFolders, ReportWhatIsMissing) {
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
