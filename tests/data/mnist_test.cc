#include "data/formats/formats.h"
#include "tests/data/files.h"

namespace sluice::data {
namespace {

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255U);
  return bytes;
}

std::string images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  std::string file = number(0x803) + number(count) + number(height) + number(width);
  for (std::uint32_t i = 0; i < count * height * width; ++i) file += static_cast<char>(i * 7);
  return file;
}

std::string labels(const std::string& values) {
  return number(0x801) + number(static_cast<std::uint32_t>(values.size())) + values;
}

class Mnist : public WithFiles {
 protected:
  Mnist() {
    write("train-images-idx3-ubyte", images(3, 4, 5));
    write("train-labels-idx1-ubyte", labels({7, 0, 9}));
    write("t10k-images.idx3-ubyte", images(2, 4, 5));
    write("t10k-labels.idx1-ubyte", labels({1, 2}));
  }
  std::string refusal() const { return open_mnist(root_).status().message(); }
};

TEST_F(Mnist, IsReadFromIdxFiles) {
  const Data data = open_mnist(root_).value();
  EXPECT_EQ(data.train->size(), 3U);
  EXPECT_EQ(data.validation->size(), 2U);
  EXPECT_EQ(data.train->classes(), 10);
  EXPECT_EQ(data.classes.front(), "0");
  EXPECT_EQ(data.channels, 1);
  EXPECT_EQ(data.height, 4);
  EXPECT_EQ(data.width, 5);
  EXPECT_EQ(data.train->label(0), 7);
  EXPECT_EQ(data.train->label(2), 9);
  EXPECT_EQ(data.validation->label(1), 2);
  Image image;
  ASSERT_TRUE(data.train->decode(1, image).ok());
  ASSERT_EQ(image.size(), 20U);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(image.pixels[i], static_cast<std::uint8_t>((20 + i) * 7));
  }
}

TEST_F(Mnist, AnErrorNamesATruncatedFile) {
  write("train-images-idx3-ubyte", images(3, 4, 5).substr(0, 70));
  EXPECT_EQ(refusal(),
            path("train-images-idx3-ubyte") + " is truncated: its header says 76 bytes, it has 70");
  write("train-images-idx3-ubyte", images(3, 4, 5) + "x");
  EXPECT_EQ(refusal(),
            path("train-images-idx3-ubyte") + " is too long: its header says 76 bytes, it has 77");
  write("train-images-idx3-ubyte", "abc");
  EXPECT_EQ(refusal(),
            path("train-images-idx3-ubyte") + " is 3 bytes long, and an IDX header alone is 16");
}

TEST_F(Mnist, AnErrorNamesAFileOfAnotherKind) {
  write("train-images-idx3-ubyte", labels(std::string(20, 'a')));
  EXPECT_EQ(refusal(), path("train-images-idx3-ubyte") +
                           " is not an IDX file of images: it begins with 00000801, not 00000803");
  write("train-images-idx3-ubyte", number(0x803) + number(1) + number(1U << 31U) + number(2));
  EXPECT_EQ(refusal(), path("train-images-idx3-ubyte") +
                           " has a wrong size in its header: 2147483648 of pixels per side");
}

TEST_F(Mnist, AnErrorNamesFilesThatDoNotMatch) {
  write("t10k-labels.idx1-ubyte", labels({1, 2, 3}));
  EXPECT_EQ(refusal(), path("t10k-labels.idx1-ubyte") + " has 3 labels for the 2 images of " +
                           path("t10k-images.idx3-ubyte"));
  write("t10k-labels.idx1-ubyte", labels({1, 12}));
  EXPECT_EQ(refusal(),
            path("t10k-labels.idx1-ubyte") + " has a label 12, which no training image has");
  write("t10k-images.idx3-ubyte", images(2, 5, 4));
  EXPECT_EQ(refusal(), path("t10k-images.idx3-ubyte") + " has images of 4x5 pixels where " +
                           path("train-images-idx3-ubyte") + " has 5x4");
  std::filesystem::remove(root_ / "t10k-images.idx3-ubyte");
  EXPECT_EQ(refusal(),
            root_.string() + " has no file t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz");
}

}  // namespace
}  // namespace sluice::data
