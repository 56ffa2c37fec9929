#include "kernels/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/samples.h"

namespace sluice::kernels {
namespace {

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  return halves;
}

void expect_narrowed(DataType type, const std::vector<float>& from, float scale = 1) {
  std::vector<std::uint16_t> expected;
  for (const float value : from) expected.push_back(reference::encode(type, value * scale));
  const ConvertCounts counted = reference::count_narrowed(type, from, scale);
  on_every_instruction_set([&] {
    std::vector<std::uint16_t> actual(from.size());
    const ConvertCounts counts = narrow(type, actual.data(), from.data(), from.size(), scale);
    EXPECT_EQ(counts.overflow, counted.overflow);
    EXPECT_EQ(counts.inf, counted.inf);
    EXPECT_EQ(counts.nan, counted.nan);
    for (std::size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(actual[i], expected[i]) << name(type) << " of " << from[i] << std::hex << " (0x"
                                        << std::bit_cast<std::uint32_t>(from[i]) << "): 0x"
                                        << actual[i] << ", not 0x" << expected[i];
    }
  });
}

TEST(Convert, WidensEveryHalf) {
  const std::vector<std::uint16_t> from = all_halves();
  for (const DataType type : kHalfTypes) {
    on_every_instruction_set([&] {
      std::vector<float> to(from.size());
      widen(type, to.data(), from.data(), from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        const float expected = reference::decode(type, from[i]);
        const std::uint32_t either = std::isnan(expected) ? 0x400000 : 0;  // quiet or signalling
        ASSERT_EQ(std::bit_cast<std::uint32_t>(to[i]) | either,
                  std::bit_cast<std::uint32_t>(expected) | either)
            << name(type) << std::hex << " 0x" << from[i];
      }
    });
  }
}

TEST(Convert, NarrowsEveryWidenedHalfToItself) {
  const std::vector<std::uint16_t> from = all_halves();
  for (const DataType type : kHalfTypes) {
    on_every_instruction_set([&] {
      std::vector<float> wide(from.size());
      std::vector<std::uint16_t> back(from.size());
      widen(type, wide.data(), from.data(), from.size());
      narrow(type, back.data(), wide.data(), wide.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        const std::uint16_t quiet = type == DataType::F16 ? 0x200 : 0x40;
        const bool nan = std::isnan(reference::decode(type, from[i]));
        ASSERT_EQ(back[i], nan ? from[i] | quiet : from[i]) << name(type);
      }
    });
  }
}

TEST(Convert, RoundsToNearestEvenAroundEveryHalf) {
  constexpr float kUp = std::numeric_limits<float>::infinity();
  for (const DataType type : kHalfTypes) {
    std::vector<float> from;
    for (std::uint32_t bits = 0; bits < 0x7fff; ++bits) {
      const float low = reference::decode(type, static_cast<std::uint16_t>(bits));
      float high = reference::decode(type, static_cast<std::uint16_t>(bits + 1));
      if (!std::isfinite(low)) break;
      if (!std::isfinite(high)) high = std::ldexp(1.0f, type == DataType::F16 ? 16 : 127);
      const float middle = low + (high - low) / 2;
      for (const float value : {low, middle, std::nextafter(middle, -kUp),
                                std::nextafter(middle, kUp), std::nextafter(low, kUp)}) {
        from.push_back(value);
        from.push_back(-value);
      }
    }
    expect_narrowed(type, from);
  }
}

TEST(Convert, NarrowsAnyF32) {
  std::vector<float> from;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 10007) {
    from.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const std::uint32_t bits :
       {0x7f800000u, 0xff800000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7fc00000u, 0x7f7fffffu,
        0x7f7f8000u, 0x7f7f7fffu, 0x477ff000u, 0x477fefffu, 0x47800000u, 0x33000000u, 0x33000001u,
        0x32ffffffu, 0x387fffffu, 0x00000001u, 0x80000000u, 0x00008000u, 0x007fffffu}) {
    from.push_back(std::bit_cast<float>(bits));
  }
  for (const DataType type : kHalfTypes) expect_narrowed(type, from);
}

TEST(Convert, AcceptsAnyCountAndAlignment) {
  std::mt19937 random{7};
  std::vector<float> from(5000);
  for (float& value : from) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (const DataType type : kHalfTypes) {
    for (const std::size_t count : {0, 1, 3, 7, 13, 63, 64, 65, 4095, 4097}) {
      for (const std::size_t shift : {0, 1, 5}) {
        on_every_instruction_set([&] {
          Sample narrowed{type, count, shift};
          Sample widened{DataType::F32, count, shift};
          narrow(type, narrowed.data(), from.data() + shift, count);
          widen(type, static_cast<float*>(widened.data()), narrowed.data(), count);
          ASSERT_TRUE(narrowed.guards_hold());
          ASSERT_TRUE(widened.guards_hold());
          for (std::size_t i = 0; i < count; ++i) {
            const std::uint16_t half = reference::encode(type, from[shift + i]);
            ASSERT_EQ(static_cast<std::uint16_t*>(narrowed.data())[i], half);
            ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float*>(widened.data())[i]),
                      std::bit_cast<std::uint32_t>(reference::decode(type, half)));
          }
        });
      }
    }
  }
}

TEST(Convert, ScalesBeforeNarrowingAndAfterWidening) {
  std::mt19937 random{11};
  std::uniform_real_distribution<float> uniform{-100, 100};
  std::vector<float> from(1003);
  for (float& value : from) value = uniform(random);
  from[500] = 3e38f;  // finite before scaling, infinite in f32 after it
  from[501] = std::numeric_limits<float>::infinity();
  for (const DataType type : kHalfTypes) {
    expect_narrowed(type, from, 1024);
    expect_narrowed(type, from, 1.0f / 3);
    expect_narrowed(type, from, 0);  // infinity times zero is NaN
    const std::uint16_t three = reference::encode(type, 3);
    on_every_instruction_set([&] {
      float third = 0;
      widen(type, &third, &three, 1, 1.0f / 3);
      EXPECT_EQ(third, 3 * (1.0f / 3));
    });
  }
}

TEST(Convert, ReturnsTheLargestMagnitudeThatItWidens) {
  std::mt19937 random{13};
  for (const DataType type : kHalfTypes) {
    for (const std::size_t count : {0, 1, 3, 8, 17, 1000}) {
      std::vector<std::uint16_t> from(count);
      float largest = 0;
      for (std::uint16_t& bits : from) {
        do bits = static_cast<std::uint16_t>(random());
        while (!std::isfinite(reference::decode(type, bits)));
        largest = std::max(largest, std::abs(reference::decode(type, bits)));
      }
      on_every_instruction_set([&] {
        Sample checked{DataType::F32, count, 3};
        std::vector<float> plain(count);
        auto* const to = static_cast<float*>(checked.data());
        EXPECT_EQ(widen_checked(type, to, from.data(), count, 0.25F), largest);
        widen(type, plain.data(), from.data(), count, 0.25F);
        ASSERT_TRUE(checked.guards_hold());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to[i], plain[i]);
      });
    }
  }
}

TEST(Convert, FindsInfinityAndNanAtAnyIndexWhileWidening) {
  constexpr std::size_t kCount = 37;
  for (const DataType type : kHalfTypes) {
    const std::uint16_t infinity = type == DataType::F16 ? 0x7c00 : 0x7f80;
    for (std::size_t at = 0; at < kCount; ++at) {
      std::vector<std::uint16_t> from(kCount, reference::encode(type, -3));
      on_every_instruction_set([&] {
        float to[kCount];
        from[at] = static_cast<std::uint16_t>(infinity | 0x8000);
        EXPECT_TRUE(std::isinf(widen_checked(type, to, from.data(), kCount)));
        from[(at + 5) % kCount] = static_cast<std::uint16_t>(infinity + 1);
        EXPECT_TRUE(std::isnan(widen_checked(type, to, from.data(), kCount)));
        from[(at + 5) % kCount] = 0;
      });
    }
  }
}

TEST(Convert, CountsNothingIfNothingOverflows) {
  const std::vector<float> from(10000, 65519.0f);
  std::vector<std::uint16_t> to(from.size());
  EXPECT_EQ(narrow(DataType::F16, to.data(), from.data(), from.size()), ConvertCounts{});
  EXPECT_EQ(narrow(DataType::F16, to.data(), from.data(), from.size(), 2).overflow, 10000u);
  EXPECT_EQ(narrow(DataType::BF16, to.data(), from.data(), from.size(), 2), ConvertCounts{});
}

TEST(Copy, CopiesExactlyTheGivenBytes) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097},
                                  kStreamBytes - 1, kStreamBytes, kStreamBytes + 333}) {
    for (const std::size_t shift : {0, 1, 63}) {
      std::vector<std::uint8_t> from(bytes + 128);
      for (std::size_t i = 0; i < from.size(); ++i)
        from[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
      on_every_instruction_set([&] {
        std::vector<std::uint8_t> to(bytes + 128, 0xee);
        std::vector<std::uint8_t> expected = to;
        for (std::size_t i = 0; i < bytes; ++i) expected[shift + i] = from[2 * shift / 3 + i];
        copy(to.data() + shift, from.data() + 2 * shift / 3, bytes);
        EXPECT_TRUE(to == expected) << bytes << " bytes, shift " << shift;
      });
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
