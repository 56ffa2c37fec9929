// image_bytes.h - JPEG and PNG files of known pixels, encoded by the libraries directly.
#pragma once

#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace sluice::data {

// Takes interleaved pixels, three channels.
inline std::string jpeg_of(const std::vector<std::uint8_t>& pixels, int width, int height,
                           int quality = 100) {
  const tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(handle, pixels.data(), width, 0, height, TJPF_RGB, &bytes, &size,
                        TJSAMP_444, quality, TJFLAG_ACCURATEDCT),
            0);
  std::string file{reinterpret_cast<const char*>(bytes), size};
  tjFree(bytes);
  tjDestroy(handle);
  return file;
}

// An image of one colour. Decoded pixels differ from it by one or two at most.
inline std::string jpeg_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue, int width = 16,
                           int height = 8) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < width * height; ++i) pixels.insert(pixels.end(), {red, green, blue});
  return jpeg_of(pixels, width, height);
}

inline std::vector<std::uint8_t> noise(std::size_t count) {
  std::vector<std::uint8_t> values(count);
  base::Random random{1};
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random.below(256));
  return values;
}

// A file that consists mostly of pixels.
inline std::string noisy_jpeg() { return jpeg_of(noise(std::size_t{16} * 8 * 3), 16, 8); }

// A smooth image, which JPEG and resizing change little.
inline std::vector<std::uint8_t> gradient(int width, int height) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      pixels.push_back(static_cast<std::uint8_t>(255 * x / width));
      pixels.push_back(static_cast<std::uint8_t>(255 * y / height));
      pixels.push_back(static_cast<std::uint8_t>(100 + 50 * x / width));
    }
  }
  return pixels;
}

// `format` is a constant of libpng: PNG_FORMAT_RGB, PNG_FORMAT_GRAY, PNG_FORMAT_RGBA, ...
inline std::string png_of(const void* pixels, int width, int height, png_uint_32 format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr), 0);
  std::string file(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels, 0, nullptr), 0);
  file.resize(size);
  return file;
}

inline std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace sluice::data
