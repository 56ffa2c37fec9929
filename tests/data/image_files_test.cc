#include "data/formats/image_files.h"

#include "data/image/viewer.h"
#include "tests/data/files.h"
#include "tests/data/image_bytes.h"

namespace sluice::data {
namespace {

class Photographs : public WithFiles {
 protected:
  // Sizes differ; one file is a PNG by another name.
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
  StoredImage stored;
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
                ": the images to learn from and to validate have different classes: only train "
                "has dog; only the other has eel");
  std::filesystem::remove_all(root_ / "test/eel");
  EXPECT_EQ(open().status().message(),
            root_.string() +
                ": the images to learn from and to validate have different classes: only train "
                "has dog");
}

TEST_F(Photographs, NoImagesAreAnError) {
  std::filesystem::create_directories(root_ / "train/cat");
  std::filesystem::create_directories(root_ / "test/cat");
  EXPECT_EQ(open().status().message(), root_.string() + " has no images to learn from");
  write("train/cat/0.jpg", jpeg_of(1, 2, 3));
  EXPECT_EQ(open().status().message(), root_.string() + " has no images to validate");
}

TEST_F(Photographs, SmallOnesOfOneSizeAreKept) {
  for (const std::string name :
       {"train/cat/0", "train/cat/1", "train/dog/0", "test/cat/0", "test/dog/0"}) {
    write(name + ".jpg", jpeg_of(40, 80, 120));
  }
  const Data data = open().value();
  EXPECT_EQ(data.height, 8);
  EXPECT_EQ(data.width, 16);
  EXPECT_NEAR(data.normalization.mean.at(1), 80, 2);
  std::vector<std::uint8_t> buffer;
  StoredImage first;
  ASSERT_TRUE(data.train->read(2, buffer, first).ok());
  const std::vector<std::uint8_t> pixels{first.bytes.begin(), first.bytes.end()};
  std::filesystem::remove_all(root_ / "train");  // from here on it is in memory
  StoredImage again;
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

TEST_F(Photographs, AViewIsCutFromTheMiddleOrFromARandomPart) {
  // Red grows to the right, green downwards.
  const std::string file = jpeg_of(gradient(640, 480), 640, 480);
  const std::vector<std::uint8_t> bytes = bytes_of(file);
  const StoredImage stored{.storage = Storage::File, .bytes = bytes};
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

// A grey image in memory, for a network that takes larger ones.
TEST(Viewer, BringsImagesToSize) {
  const std::vector<std::uint8_t> pixels(28 * 28, 200);
  const StoredImage stored{Storage::Planes, 1, 28, 28, pixels};
  std::vector<float> out(64 * 64);
  for (const ViewKind kind :
       {ViewKind::Whole, ViewKind::Shifted, ViewKind::CentreCrop, ViewKind::ResizedCrop}) {
    Viewer viewer{{.kind = kind, .padding = 4}, {.mean = {100}, .deviation = {50}}, 64, 3};
    ASSERT_TRUE(viewer.view(stored, {1, 2}, out.data()).ok());
    EXPECT_NEAR(out[32 * 64 + 32], 2, 1e-5);
  }
  Viewer coloured{{}, {.mean = {0, 0, 0}, .deviation = {1, 1, 1}}, 28, 3};
  EXPECT_EQ(coloured.view(stored, {}, out.data()).message(), "has 1 channels where 3 are expected");
}

}  // namespace
}  // namespace sluice::data
