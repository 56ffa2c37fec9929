#include "kernels/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/samples.h"

namespace sluice::kernels {
namespace {

constexpr std::array kFloatTypes = {DataType::F32, DataType::F64, DataType::F16, DataType::BF16};

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

TEST(Finite, CountsWhatIsNot) {
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

TEST(Finite, FindsASingleOneWhereverItIs) {
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
