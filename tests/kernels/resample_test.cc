#include "kernels/resample.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/kernels/instruction_sets.h"

namespace sluice::kernels {
namespace {

std::vector<float> some_floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  base::Random random{seed};
  for (float& value : values) value = static_cast<float>(random.below(1 << 20)) * 0x1p-12F;
  return values;
}

// Adds in the order of the rows and rounds each sum: the same bits with all instruction sets.
TEST(Resample, BlendsRows) {
  constexpr std::size_t kStride = 211;
  std::vector<std::uint8_t> from(kStride * 9);
  base::Random random{1};
  for (std::uint8_t& value : from) value = static_cast<std::uint8_t>(random.below(256));
  for (const std::size_t rows : {1, 2, 5, 9}) {
    const std::vector<float> weights = some_floats(rows, rows);
    for (const std::size_t count : {0, 1, 3, 8, 31, 64, 211}) {
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < rows; ++k) {
          const float product = weights[k] * static_cast<float>(from[k * kStride + i]);
          expected[i] += product;
        }
      }
      on_every_instruction_set([&] {
        std::vector<float> out(count + 1, -1);
        blend_rows(from.data(), kStride, weights.data(), rows, count, out.data());
        EXPECT_EQ(out.back(), -1);
        out.pop_back();
        EXPECT_EQ(out, expected);
      });
    }
  }
}

TEST(Resample, BlendsPixels) {
  constexpr std::size_t kPixels = 40;
  const std::vector<float> row = some_floats(kPixels * 3 + 1, 7);
  const float scale[3] = {0.5F, 0.25F, 3};
  const float shift[3] = {1, -7, 0.125F};
  for (const std::size_t taps : {1, 2, 3, 6}) {
    for (const std::size_t outputs : {1, 5, 33}) {
      Taps table{taps, {}, some_floats(taps * outputs, taps)};
      base::Random random{outputs};
      for (std::size_t x = 0; x < outputs; ++x) {
        table.first.push_back(x == 0 ? kPixels - taps : random.below(kPixels - taps + 1));
      }
      std::vector<std::vector<float>> expected(3, std::vector<float>(outputs));
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t x = 0; x < outputs; ++x) {
          float sum = 0;
          for (std::size_t k = 0; k < taps; ++k) {
            const float product = table.weights[x * taps + k] * row[(table.first[x] + k) * 3 + c];
            sum += product;
          }
          const float scaled = sum * scale[c];
          expected[c][x] = scaled + shift[c];
        }
      }
      on_every_instruction_set([&] {
        std::vector<std::vector<float>> out(3, std::vector<float>(outputs));
        float* const rows[3] = {out[0].data(), out[1].data(), out[2].data()};
        blend_pixels(row.data(), table, scale, shift, rows);
        EXPECT_EQ(out, expected);
      });
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
