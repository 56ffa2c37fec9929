#include "data/image/image_decoder.h"

#include "tests/data/image_bytes.h"

namespace sluice::data {
namespace {

std::vector<std::uint8_t> decoded(const std::string& file, int divisor = 1) {
  ImageDecoder decoder;
  const std::vector<std::uint8_t> bytes = bytes_of(file);
  const Status begun = decoder.begin(bytes);
  EXPECT_TRUE(begun.ok()) << begun.message();
  ImageView pixels;
  const Status finished = decoder.finish(divisor, pixels);
  EXPECT_TRUE(finished.ok()) << finished.message();
  EXPECT_EQ(pixels.channels, 3);
  return {pixels.bytes.begin(), pixels.bytes.end()};
}

std::string refusal(const std::string& file) {
  ImageDecoder decoder;
  Image image;
  return decoder.decode(bytes_of(file), image).message();
}

void expect_near(const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& expected,
                 int tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], tolerance) << i;
}

TEST(ImageDecoder, ReadsPngExactly) {
  const auto pixels = noise(std::size_t{7} * 5 * 3);
  EXPECT_EQ(decoded(png_of(pixels.data(), 7, 5, PNG_FORMAT_RGB)), pixels);
}

TEST(ImageDecoder, ReadsGreyAsThreeEqualChannels) {
  const std::vector<std::uint8_t> grey{0, 50, 128, 255};
  const std::vector<std::uint8_t> expected{0, 0, 0, 50, 50, 50, 128, 128, 128, 255, 255, 255};
  EXPECT_EQ(decoded(png_of(grey.data(), 2, 2, PNG_FORMAT_GRAY)), expected);

  const tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const std::vector<std::uint8_t> flat(64, 77);
  ASSERT_EQ(
      tjCompress2(handle, flat.data(), 8, 0, 8, TJPF_GRAY, &bytes, &size, TJSAMP_GRAY, 100, 0), 0);
  const std::string file{reinterpret_cast<const char*>(bytes), size};
  tjFree(bytes);
  tjDestroy(handle);
  expect_near(decoded(file), std::vector<std::uint8_t>(64 * 3, 77), 1);
}

TEST(ImageDecoder, PutsTransparentPixelsOnWhite) {
  const std::vector<std::uint8_t> pixels{10, 20, 30, 255, 10, 20, 30, 0};
  EXPECT_EQ(decoded(png_of(pixels.data(), 2, 1, PNG_FORMAT_RGBA)),
            (std::vector<std::uint8_t>{10, 20, 30, 255, 255, 255}));
}

TEST(ImageDecoder, ReadsJpeg) {
  expect_near(
      decoded(jpeg_of(10, 120, 230)),
      [] {
        std::vector<std::uint8_t> all;
        for (int i = 0; i < 128; ++i) all.insert(all.end(), {10, 120, 230});
        return all;
      }(),
      2);
}

// CMYK as Adobe writes it, inverted, and as others write it: one colour with some black.
TEST(ImageDecoder, ReadsCmyk) {
  const std::vector<std::uint8_t> inks = [] {
    std::vector<std::uint8_t> all;
    for (int i = 0; i < 64; ++i) all.insert(all.end(), {200, 100, 50, 220});
    return all;
  }();
  const tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ASSERT_EQ(tjCompress2(handle, inks.data(), 8, 0, 8, TJPF_CMYK, &bytes, &size, TJSAMP_444, 100, 0),
            0);
  const std::string adobe{reinterpret_cast<const char*>(bytes), size};
  tjFree(bytes);
  tjDestroy(handle);
  ASSERT_NE(adobe.find("Adobe"), std::string::npos);  // libjpeg-turbo writes its segment
  const auto flat = [](std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
    std::vector<std::uint8_t> all;
    for (int i = 0; i < 64; ++i) all.insert(all.end(), {red, green, blue});
    return all;
  };
  expect_near(decoded(adobe), flat(200 * 220 / 255, 100 * 220 / 255, 50 * 220 / 255), 4);
}

TEST(ImageDecoder, ReadsJpegAtAFractionOfItsSize) {
  const auto pixels = gradient(64, 48);
  const std::string file = jpeg_of(pixels, 64, 48);
  expect_near(decoded(file), pixels, 6);
  for (const int divisor : {2, 4, 8}) {
    const auto small = decoded(file, divisor);
    const int width = 64 / divisor;
    const int height = 48 / divisor;
    ASSERT_EQ(small.size(), static_cast<std::size_t>(width * height * 3));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                         static_cast<std::size_t>(x)) *
                        3;
        EXPECT_NEAR(small[at], 255.0 * (x + 0.5) / width, 6);
        EXPECT_NEAR(small[at + 1], 255.0 * (y + 0.5) / height, 6);
      }
    }
  }
}

TEST(ImageDecoder, AnErrorNamesTheReason) {
  const std::string jpeg = noisy_jpeg();
  const auto pixels = noise(std::size_t{40} * 40 * 3);
  const std::string png = png_of(pixels.data(), 40, 40, PNG_FORMAT_RGB);
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_EQ(refusal("GIF89a"), "is neither a JPEG nor a PNG image");
  EXPECT_EQ(refusal(jpeg.substr(0, jpeg.size() - 100)),
            "is a broken JPEG image: Premature end of JPEG file");
  EXPECT_EQ(refusal(jpeg.substr(0, 200)), "is a broken JPEG image: it has no header");
  EXPECT_TRUE(refusal(png.substr(0, png.size() / 2)).starts_with("is a broken PNG image: "))
      << refusal(png.substr(0, png.size() / 2));
  EXPECT_TRUE(refusal(png.substr(0, 20)).starts_with("is a broken PNG image: "));
}

// A decoder reads further files after one that it could not read.
TEST(ImageDecoder, ReadsAGoodFileAfterABrokenOne) {
  ImageDecoder decoder;
  Image image;
  const std::string good = noisy_jpeg();
  for (const std::string& file :
       {good.substr(0, 300), good, good.substr(0, good.size() / 2), good}) {
    const bool ok = decoder.decode(bytes_of(file), image).ok();
    EXPECT_EQ(ok, file.size() == good.size());
  }
}

}  // namespace
}  // namespace sluice::data
