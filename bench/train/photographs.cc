#include "bench/train/photographs.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "data/image/jpeg.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

constexpr int kHeight = 375;
constexpr int kWidth = 500;
constexpr int kQuality = 90;

// Waves of several lengths, each weaker than the longer one before, and the grain of a sensor.
void draw(std::uint64_t number, data::Pixels& pixels) {
  pixels.resize(3, kHeight, kWidth);
  base::Random random{base::mixed({number})};
  const auto uniform = [&random](double least, double most) {
    return least + (most - least) * static_cast<double>(random.next() >> 11U) * 0x1p-53;
  };
  struct Wave {
    double x, y, phase, strength[3];
  };
  std::vector<Wave> waves;
  for (double length = 400; length > 5; length /= 1.7) {
    const double turn = uniform(0, 6.28);
    waves.push_back(
        {std::cos(turn) * 6.28 / length, std::sin(turn) * 6.28 / length, uniform(0, 6.28), {}});
    for (double& strength : waves.back().strength)
      strength = uniform(0.3, 1) * std::sqrt(length) * 2;
  }
  std::size_t next = 0;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      double values[3] = {128, 128, 128};
      for (const Wave& wave : waves) {
        const double height = std::sin(wave.x * x + wave.y * y + wave.phase);
        for (int c = 0; c < 3; ++c) values[c] += wave.strength[c] * height;
      }
      const std::uint64_t grain = random.next();
      for (unsigned c = 0; c < 3; ++c) {
        const double noise = static_cast<double>((grain >> (8 * c)) & 15U) - 7.5;
        pixels.values[next++] =
            static_cast<std::uint8_t>(std::clamp(values[c] + noise, 0.0, 255.0));
      }
    }
  }
}

}  // namespace

void write_photographs(const std::filesystem::path& folder, std::size_t count) {
  data::JpegEncoder encoder;
  data::Pixels pixels;
  std::vector<std::uint8_t> file;
  const auto write = [&](const char* part, std::size_t number) {
    draw(number, pixels);
    const Status status = encoder.encode(pixels.view(), kQuality, file);
    if (!status.ok()) throw Error{status};
    const std::filesystem::path place = folder / part / (number % 2 == 0 ? "even" : "odd");
    std::filesystem::create_directories(place);
    std::ofstream{place / base::format("{:05}.jpg", number), std::ios::binary}.write(
        reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  };
  for (std::size_t i = 0; i < count; ++i) write("train", i);
  for (std::size_t i = 0; i < 4; ++i) write("val", count + i);
}

}  // namespace sluice::bench
