#include "kernels/norms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/samples.h"

namespace sluice::kernels {
namespace {

constexpr std::array kFloatTypes = {DataType::F32, DataType::F64, DataType::F16, DataType::BF16};

// Values without NaN, for which all bits are promised.
Sample numbers(DataType type, std::size_t count, std::size_t shift) {
  Sample sample{type, count, shift};
  for (std::size_t i = 0; i < count; ++i) {
    const float value =
        std::sin(static_cast<float>(i + 1)) * std::ldexp(1.0f, static_cast<int>(i % 9));
    if (type == DataType::F32) static_cast<float*>(sample.data())[i] = value;
    if (type == DataType::F64) static_cast<double*>(sample.data())[i] = value / 3.0;
    if (size_of(type) == 2) {
      static_cast<std::uint16_t*>(sample.data())[i] = reference::encode(type, value);
    }
  }
  return sample;
}

TEST(Norms, HaveTheSameBitsOnEveryInstructionSet) {
  for (const DataType type : kFloatTypes) {
    for (const std::size_t count : {0, 1, 3, 7, 13, 31, 32, 33, 63, 64, 65, 1000, 10007}) {
      for (const std::size_t chunk : {1, 5, 32, 1000, 20000}) {
        const Sample from = numbers(type, count, count % 5);
        on_every_instruction_set([&] {
          std::vector<double> l1((count + chunk - 1) / chunk + 1, -1);
          std::vector<double> l2 = l1;
          l1_norms(type, from.data(), count, chunk, l1.data());
          squared_l2_norms(type, from.data(), count, chunk, l2.data());
          ASSERT_EQ(l1.back(), -1);
          ASSERT_EQ(l2.back(), -1);
          for (std::size_t first = 0; first < count; first += chunk) {
            const auto* bytes = static_cast<const std::byte*>(from.data()) + first * size_of(type);
            const std::size_t size = std::min(chunk, count - first);
            ASSERT_EQ(l1[first / chunk], reference::norm(type, bytes, size, false)) << name(type);
            ASSERT_EQ(l2[first / chunk], reference::norm(type, bytes, size, true)) << name(type);
          }
        });
      }
    }
  }
}

TEST(Norms, AreTakenChunkByChunk) {
  const std::vector<float> from = {1, -2, 3, -4, 5};
  std::vector<double> norms(3);
  l1_norms(DataType::F32, from.data(), from.size(), 2, norms.data());
  EXPECT_EQ(norms, (std::vector<double>{3, 7, 5}));
  squared_l2_norms(DataType::F32, from.data(), from.size(), 2, norms.data());
  EXPECT_EQ(norms, (std::vector<double>{5, 25, 25}));
}

TEST(Norms, DoNotOverflowForLargeValues) {
  const std::vector<float> from(100, std::numeric_limits<float>::max());
  double norm = 0;
  squared_l2_norms(DataType::F32, from.data(), from.size(), from.size(), &norm);
  EXPECT_TRUE(std::isfinite(norm));
}

TEST(Norms, AreNotFiniteOnlyInChunksWithNanOrInfinity) {
  std::vector<float> from(96, 1.0f);
  from[40] = std::numeric_limits<float>::quiet_NaN();
  from[95] = -std::numeric_limits<float>::infinity();
  on_every_instruction_set([&] {
    std::vector<double> norms(3);
    l1_norms(DataType::F32, from.data(), from.size(), 32, norms.data());
    EXPECT_EQ(norms[0], 32);
    EXPECT_TRUE(std::isnan(norms[1]));
    EXPECT_EQ(norms[2], std::numeric_limits<double>::infinity());
  });
}

double element(DataType type, const void* from, std::size_t i) {
  const auto* bytes = static_cast<const std::byte*>(from) + i * size_of(type);
  if (type == DataType::F64) {
    double value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  if (type == DataType::F32) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return reference::decode(type, bits);
}

TEST(CountNotFinite, CountsInfinitiesAndNans) {
  for (const DataType type : kFloatTypes) {
    for (const std::size_t count : {0, 1, 2, 7, 16, 63, 64, 65, 4095, 4096, 4097, 10000}) {
      for (const std::size_t shift : {0, 1}) {
        Sample sample{type, count, shift};
        fill(sample, type, count + shift);
        std::uint64_t expected = 0;
        for (std::size_t i = 0; i < count; ++i) {
          expected += std::isfinite(element(type, sample.data(), i)) ? 0 : 1;
        }
        on_every_instruction_set(
            [&] { EXPECT_EQ(count_not_finite(type, sample.data(), count), expected); });
      }
    }
  }
}

TEST(CountNotFinite, FindsASingleNanAtAnyIndex) {
  constexpr std::size_t kCount = 131;
  for (const DataType type : kFloatTypes) {
    for (std::size_t at = 0; at < kCount; ++at) {
      Sample sample{type, kCount, 0};
      std::memset(sample.data(), 0x42, sample.bytes());
      auto* const bytes = static_cast<unsigned char*>(sample.data());
      std::memset(bytes + at * size_of(type), 0xff, size_of(type));  // a NaN in every type
      on_every_instruction_set(
          [&] { EXPECT_EQ(count_not_finite(type, sample.data(), kCount), 1U); });
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
