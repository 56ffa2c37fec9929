#include "data/formats/pack.h"

#include <cmath>

#include "tests/cli/shell.h"
#include "tests/data/files.h"
#include "tests/data/image_bytes.h"

namespace sluice::data {
namespace {

class Pack : public WithFiles {
 protected:
  Pack() {
    const auto pixels = noise(std::size_t{40} * 30 * 3);
    write("images/train/cat/0.jpg", jpeg_of(gradient(100, 80), 100, 80));
    write("images/train/cat/1.jpg", png_of(pixels.data(), 40, 30, PNG_FORMAT_RGB));
    write("images/train/dog/0.jpg", jpeg_of(200, 100, 50, 80, 100));
    write("images/val/cat/0.jpg", jpeg_of(gradient(90, 90), 90, 90));
    write("images/val/dog/0.jpg", jpeg_of(10, 20, 30));
  }
  Data source() const { return open_data("images:" + path("images")).value(); }
  Result<PackSummary> pack(const PackOptions& options) const {
    return pack_images(source(), path("out.pack"), options);
  }
  std::string refusal() const { return open_pack(path("out.pack")).status().message(); }
};

void expect_alike(const Image& got, const Image& expected, int tolerance) {
  ASSERT_EQ(got.height, expected.height);
  ASSERT_EQ(got.width, expected.width);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got.pixels[i], expected.pixels[i], tolerance) << i;
  }
}

TEST_F(Pack, HasTheImagesOfItsSource) {
  for (const bool raw : {true, false}) {
    const PackSummary summary = pack({.raw = raw, .threads = 3}).value();
    EXPECT_EQ(summary.train, 3U);
    EXPECT_EQ(summary.validation, 2U);
    EXPECT_EQ(summary.bytes, std::filesystem::file_size(path("out.pack")));
    EXPECT_FALSE(std::filesystem::exists(path("out.pack.part")));
    const Data images = source();
    const Data packed = open_data("pack:" + path("out.pack")).value();
    EXPECT_EQ(packed.classes, images.classes);
    EXPECT_EQ(packed.channels, 3);
    EXPECT_EQ(packed.height, 0);
    Image expected;
    Image got;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(packed.train->label(i), images.train->label(i));
      ASSERT_TRUE(images.train->decode(i, expected).ok());
      ASSERT_TRUE(packed.train->decode(i, got).ok());
      // JPEG files are copied. The PNG file, which is noise, is encoded again.
      if (raw || i != 1) expect_alike(got, expected, 0);
    }
    ASSERT_TRUE(images.validation->decode(1, expected).ok());
    ASSERT_TRUE(packed.validation->decode(1, got).ok());
    expect_alike(got, expected, 0);
  }
}

TEST_F(Pack, ShrinksLargeImages) {
  ASSERT_TRUE(pack({.resize = 40}).ok());
  const Data packed = open_pack(path("out.pack")).value();
  Image image;
  ASSERT_TRUE(packed.train->decode(0, image).ok());
  EXPECT_EQ(image.height, 40);
  EXPECT_EQ(image.width, 50);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 50; ++x) {
      const auto at = static_cast<std::size_t>(y) * 50 + static_cast<std::size_t>(x);
      ASSERT_NEAR(image.pixels[at], 255 * (x + 0.5) / 50, 8);
      ASSERT_NEAR(image.pixels[2000 + at], 255 * (y + 0.5) / 40, 8);
    }
  }
  ASSERT_TRUE(packed.train->decode(1, image).ok());
  EXPECT_EQ(image.height, 30);  // it was smaller
  ASSERT_TRUE(packed.train->decode(2, image).ok());
  EXPECT_EQ(image.height, 50);
  EXPECT_EQ(image.width, 40);
}

// The mean over all pixels of the training images, computed naively.
TEST_F(Pack, StoresMeanAndDeviation) {
  ASSERT_TRUE(pack({.raw = true}).ok());
  const Data packed = open_pack(path("out.pack")).value();
  double sum = 0;
  double squares = 0;
  double count = 0;
  Image image;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(packed.train->decode(i, image).ok());
    for (std::size_t j = 0; j < image.plane(); ++j) {
      sum += image.pixels[j];
      squares += image.pixels[j] * image.pixels[j];
      ++count;
    }
  }
  EXPECT_NEAR(packed.normalization.mean.at(0), sum / count, 1e-6);
  EXPECT_NEAR(packed.normalization.deviation.at(0),
              std::sqrt(squares / count - sum / count * sum / count), 1e-6);
}

TEST_F(Pack, StoresGreyImagesAsPixels) {
  const Data demo = open_data("demo").value();
  ASSERT_TRUE(pack_images(demo, path("out.pack"), {.threads = 2}).ok());
  const Data packed = open_pack(path("out.pack")).value();
  EXPECT_EQ(packed.train->size(), demo.train->size());
  EXPECT_EQ(packed.height, 28);
  EXPECT_NEAR(packed.normalization.mean[0], demo.normalization.mean[0], 1e-6);
  Image expected;
  Image got;
  ASSERT_TRUE(demo.validation->decode(77, expected).ok());
  ASSERT_TRUE(packed.validation->decode(77, got).ok());
  EXPECT_EQ(got.pixels, expected.pixels);
}

TEST_F(Pack, ATruncatedForeignOrDamagedFileIsRefused) {
  ASSERT_TRUE(pack({}).ok());
  const std::string whole = read("out.pack");
  const std::string file = path("out.pack");
  for (const std::size_t length : {whole.size() - 1, whole.size() / 2, std::size_t{64}}) {
    write("out.pack", whole.substr(0, length));
    EXPECT_EQ(refusal(), file + " is truncated: its header says " + std::to_string(whole.size()) +
                             " bytes, it has " + std::to_string(length));
  }
  write("out.pack", whole.substr(0, 63));
  EXPECT_EQ(refusal(), file + " is not a pack file: it is too short");
  write("out.pack", "");
  EXPECT_EQ(refusal(), file + " is not a pack file: it is too short");
  write("out.pack", std::string(200, 'x'));
  EXPECT_EQ(refusal(), file + " is not a pack file: it begins with \"xxxxxxxx\", not SLUICEPK");
  write("out.pack", whole + "x");
  EXPECT_TRUE(refusal().starts_with(file + " is not a valid pack file")) << refusal();
  std::string newer = whole;
  newer[8] = 2;
  write("out.pack", newer);
  EXPECT_EQ(refusal(), file + " is a pack file of version 2, this Sluice reads version 1");
  std::string torn = whole;
  torn[whole.size() - 3] ^= 1;
  write("out.pack", torn);
  EXPECT_EQ(refusal(), file + " is damaged: the checksum of its index is wrong");
  torn = whole;
  torn[24] ^= 1;  // the number of records
  write("out.pack", torn);
  EXPECT_EQ(refusal(), file + " is damaged: the checksum of its index is wrong");
}

TEST_F(Pack, ADamagedRecordIsOneBrokenImage) {
  ASSERT_TRUE(pack({.raw = true}).ok());
  std::string damaged = read("out.pack");
  damaged[64 + 100 * 80 * 3 + 5] ^= 1;  // in the second record
  write("out.pack", damaged);
  const Data packed = open_pack(path("out.pack")).value();
  Image image;
  EXPECT_TRUE(packed.train->decode(0, image).ok());
  EXPECT_EQ(packed.train->decode(1, image).message(),
            path("out.pack") + ", record 1, is damaged: its checksum is wrong");
  EXPECT_TRUE(packed.train->decode(2, image).ok());
}

TEST_F(Pack, LeavesOutBrokenImagesUpToALimit) {
  write("images/train/dog/1.jpg", "nothing");
  write("images/train/dog/2.jpg", "nothing");
  write("images/train/dog/3.jpg", jpeg_of(1, 1, 1));
  const PackSummary summary = pack({.most_broken = 2}).value();
  EXPECT_EQ(summary.train, 4U);
  EXPECT_EQ(summary.skipped,
            (std::vector<std::string>{
                path("images/train/dog/1.jpg") + " is neither a JPEG nor a PNG image",
                path("images/train/dog/2.jpg") + " is neither a JPEG nor a PNG image"}));
  const std::string before = read("out.pack");
  EXPECT_EQ(pack({.most_broken = 1}).status().message(),
            "more than 1 images are broken, the last: " + path("images/train/dog/2.jpg") +
                " is neither a JPEG nor a PNG image");
  EXPECT_EQ(read("out.pack"), before);
  EXPECT_FALSE(std::filesystem::exists(path("out.pack.part")));
}

TEST_F(Pack, AnErrorNamesAFileThatCannotBeWritten) {
  EXPECT_EQ(pack_images(source(), path("nowhere/out.pack"), {}).status().message(),
            path("nowhere/out.pack.part") + " cannot be written: No such file or directory");
}

TEST_F(Pack, IsACommand) {
  const cli::Outcome packed = cli::shell("SLUICE data pack " + path("images") + " " +
                                         path("out.pack") + " --resize 32 --raw");
  EXPECT_EQ(packed.status, 0) << packed.err;
  EXPECT_EQ(packed.out.substr(0, packed.out.find(',')), path("out.pack") + ": 3 training images");
  EXPECT_EQ(packed.err, "");
  EXPECT_EQ(open_pack(path("out.pack")).value().train->size(), 3U);

  // It overwrites a pack file, but no other file.
  EXPECT_EQ(cli::shell("SLUICE data pack " + path("images") + " " + path("out.pack")).status, 0);
  write("letter", "Dear Sir");
  const cli::Outcome kept = cli::shell("SLUICE data pack " + path("images") + " " + path("letter"));
  EXPECT_EQ(kept.status, 2);
  EXPECT_EQ(kept.err, "sluice: " + path("letter") +
                          " exists and is not a pack file: remove it or name another file\n");
  const cli::Outcome wrong = cli::shell("SLUICE data pack /nowhere " + path("out.pack"));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.err.find("sluice: there is no data \"/nowhere\""), 0U) << wrong.err;
}

}  // namespace
}  // namespace sluice::data
