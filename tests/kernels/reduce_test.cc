// Compares every instruction set with the naive reference, bit for bit.
#include "kernels/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/convert.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/samples.h"

namespace sluice::kernels {
namespace {

constexpr std::array kOps = {ReduceOp::Sum,     ReduceOp::Mean, ReduceOp::Min, ReduceOp::Max,
                             ReduceOp::Product, ReduceOp::And,  ReduceOp::Or,  ReduceOp::Xor};

Reduction reduction_of(DataType type, ReduceOp op, std::size_t sources) {
  if (op == ReduceOp::Mean) return mean_over(static_cast<int>(sources), type);
  return {.type = type, .op = op};
}

bool is_nan(DataType type, const void* element) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, element, sizeof value);
    return value;
  };
  switch (type) {
    case DataType::F32:
      return std::isnan(as(float{}));
    case DataType::F64:
      return std::isnan(as(double{}));
    case DataType::F16:
    case DataType::BF16:
      return std::isnan(reference::decode(type, as(std::uint16_t{})));
    default:
      return false;
  }
}

// Expects the same bits, but accepts any NaN for a NaN in a sum, in a product, or with a single
// source.
void expect_same(const Reduction& reduction, std::size_t sources, const Sample& expected,
                 const void* actual) {
  const bool any_nan =
      sources == 1 || (reduction.op != ReduceOp::Min && reduction.op != ReduceOp::Max);
  if (std::memcmp(expected.data(), actual, expected.bytes()) == 0) return;
  const std::size_t size = size_of(reduction.type);
  for (std::size_t at = 0; at < expected.bytes(); at += size) {
    const auto* want = static_cast<const std::byte*>(expected.data()) + at;
    const auto* have = static_cast<const std::byte*>(actual) + at;
    if (std::memcmp(want, have, size) == 0) continue;
    if (any_nan && is_nan(reduction.type, want) && is_nan(reduction.type, have)) continue;
    std::uint64_t want_bits = 0;
    std::uint64_t have_bits = 0;
    std::memcpy(&want_bits, want, size);
    std::memcpy(&have_bits, have, size);
    FAIL() << "element " << at / size << std::hex << ": 0x" << have_bits << ", not 0x" << want_bits;
  }
}

struct Case {
  std::size_t count;
  std::size_t sources;
  std::size_t targets = 1;
  std::size_t shift = 0;     // elements past an aligned address
  std::size_t in_place = 0;  // so many of the last sources are targets

  // Sources have different shifts, unless all are aligned.
  std::size_t shift_of(std::size_t source) const { return shift == 0 ? 0 : (shift + source) % 16; }
};

void check(const Reduction& reduction, const Case& c) {
  SCOPED_TRACE(testing::Message() << name(reduction.type) << ' ' << name(reduction.op) << " of "
                                  << c.count << " x " << c.sources << " into " << c.targets
                                  << ", shift " << c.shift << ", in place " << c.in_place);
  std::vector<Sample> originals;
  std::vector<const void*> original_pointers;
  for (std::size_t k = 0; k < c.sources; ++k) {
    originals.emplace_back(reduction.type, c.count, c.shift_of(k));
    fill(originals.back(), reduction.type, c.count * 31 + k);
  }
  for (const Sample& original : originals) original_pointers.push_back(original.data());
  Sample expected{reduction.type, c.count, 0};
  reference::reduce(reduction, expected.data(), original_pointers, c.count);

  on_every_instruction_set([&] {
    std::vector<Sample> sources;
    for (std::size_t k = 0; k < c.sources; ++k) {
      sources.emplace_back(reduction.type, c.count, c.shift_of(k)).assign(originals[k]);
    }
    std::vector<Sample> separate;
    for (std::size_t t = c.in_place; t < c.targets; ++t) {
      separate.emplace_back(reduction.type, c.count, c.shift);
    }
    std::vector<const void*> source_pointers;
    std::vector<void*> target_pointers;
    for (const Sample& source : sources) source_pointers.push_back(source.data());
    for (std::size_t t = 0; t < c.in_place; ++t) {
      target_pointers.push_back(sources[c.sources - 1 - t].data());
    }
    for (Sample& target : separate) target_pointers.push_back(target.data());
    reduce_to_all(reduction, target_pointers, source_pointers, c.count);
    for (const void* target : target_pointers) expect_same(reduction, c.sources, expected, target);
    for (const Sample& sample : sources) ASSERT_TRUE(sample.guards_hold());
    for (const Sample& sample : separate) ASSERT_TRUE(sample.guards_hold());
    for (std::size_t k = 0; k + c.in_place < c.sources; ++k) {
      ASSERT_EQ(std::memcmp(sources[k].data(), originals[k].data(), sources[k].bytes()), 0)
          << "source " << k << " was written";
    }
  });
}

template <class Each>
void for_all_types_and_ops(std::size_t sources, Each each) {
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : kOps) {
      if (is_legal(type, op)) each(reduction_of(type, op, sources));
    }
  }
}

TEST(Reduce, RunsOnMoreThanOneInstructionSet) { EXPECT_GE(instruction_sets().size(), 2u); }

TEST(Reduce, AcceptsAnyCount) {
  for (const std::size_t count : {0, 1, 3, 7, 13, 63, 64, 65, 1000, 4099}) {
    for (const std::size_t sources : {2, 3}) {
      for_all_types_and_ops(sources, [&](const Reduction& reduction) {
        check(reduction, {.count = count, .sources = sources});
        check(reduction, {.count = count, .sources = sources, .targets = 2, .in_place = 2});
      });
    }
  }
}

TEST(Reduce, AcceptsAnyNumberOfSources) {
  for (const std::size_t sources : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 64}) {
    for_all_types_and_ops(sources, [&](const Reduction& reduction) {
      check(reduction, {.count = 333, .sources = sources});
      check(reduction, {.count = 333, .sources = sources, .shift = 1, .in_place = 1});
    });
  }
}

TEST(Reduce, WritesToSeveralTargets) {
  for (const std::size_t targets : {1, 2, 3, 5}) {
    for (const std::size_t in_place : {0, 1, 2}) {
      if (in_place > targets) continue;
      for_all_types_and_ops(3, [&](const Reduction& reduction) {
        check(reduction, {.count = 777, .sources = 3, .targets = targets, .in_place = in_place});
      });
    }
  }
}

TEST(Reduce, AcceptsAnyAlignment) {
  for (const std::size_t shift : {1, 2, 5, 11}) {
    for_all_types_and_ops(2, [&](const Reduction& reduction) {
      check(reduction, {.count = 513, .sources = 2, .shift = shift});
      check(reduction, {.count = 513, .sources = 2, .targets = 2, .shift = shift, .in_place = 2});
    });
  }
}

TEST(Reduce, MayWriteToAnyOfItsSources) {
  constexpr std::size_t kCount = 275;
  for_all_types_and_ops(4, [&](const Reduction& reduction) {
    for (std::size_t own = 0; own < 4; ++own) {
      std::vector<Sample> samples;
      std::vector<const void*> sources;
      for (std::size_t k = 0; k < 4; ++k) samples.emplace_back(reduction.type, kCount, k);
      for (std::size_t k = 0; k < 4; ++k) {
        fill(samples[k], reduction.type, k);
        sources.push_back(samples[k].data());
      }
      Sample expected{reduction.type, kCount, 0};
      reference::reduce(reduction, expected.data(), sources, kCount);
      on_every_instruction_set([&] {
        for (std::size_t k = 0; k < 4; ++k) fill(samples[k], reduction.type, k);
        reduce_into(reduction, samples[own].data(), sources, kCount);
        expect_same(reduction, 4, expected, samples[own].data());
      });
    }
  });
}

TEST(Reduce, ComputesLargeSumsPastTheCache) {
  constexpr std::size_t kCount = 1000003;
  for (const DataType type : kDataTypes) {
    if (!is_legal(type, ReduceOp::Mean)) continue;
    const Reduction mean = mean_over(3, type);
    check(mean, {.count = kCount, .sources = 3, .shift = 3});
    if (size_of(type) != 4) continue;
    ASSERT_GE(kCount * size_of(type), kStreamBytes);
    check(mean, {.count = kCount, .sources = 2, .targets = 2});
    check(mean, {.count = kCount, .sources = 3, .targets = 2, .in_place = 1});
  }
}

TEST(Reduce, AddsFromLeftToRight) {
  const float big = 1e8f;
  const std::vector<float> values = {big, 3.0f, -big, 3.0f};
  std::vector<const void*> sources;
  for (const float& value : values) sources.push_back(&value);
  float sum = 0;
  reduce_into({}, &sum, sources, 1);
  EXPECT_EQ(sum, ((big + 3.0f) - big) + 3.0f);
  EXPECT_NE(sum, 6.0f);
}

TEST(Reduce, RoundsHalvesOnce) {
  // 2048 + 1 + 1 + 1 + 1: rounding after every addition would stay at 2048.
  const std::uint16_t big = reference::encode(DataType::F16, 2048);
  const std::uint16_t one = reference::encode(DataType::F16, 1);
  const std::vector<const void*> sources = {&big, &one, &one, &one, &one};
  std::uint16_t sum = 0;
  reduce_into({.type = DataType::F16}, &sum, sources, 1);
  EXPECT_EQ(reference::decode(DataType::F16, sum), 2052.0f);
}

TEST(Reduce, ComputesAMeanOfHalvesWithoutOverflow) {
  const std::uint16_t big = reference::encode(DataType::F16, 60000);
  const std::vector<const void*> sources = {&big, &big, &big};
  std::uint16_t mean = 0;
  reduce_into(mean_over(3, DataType::F16), &mean, sources, 1);
  EXPECT_EQ(mean, big);
  reduce_into({.type = DataType::F16}, &mean, sources, 1);
  EXPECT_TRUE(std::isinf(reference::decode(DataType::F16, mean)));
}

TEST(Reduce, TruncatesAMeanOfIntegersTowardsZero) {
  const std::int32_t a[] = {-7, 7, -2, 0};
  const std::int32_t b[] = {0, 0, 1, 0};
  const std::vector<const void*> sources = {a, b};
  std::int32_t mean[4];
  reduce_into(mean_over(2, DataType::I32), mean, sources, 4);
  EXPECT_EQ(mean[0], -3);
  EXPECT_EQ(mean[1], 3);
  EXPECT_EQ(mean[2], 0);
  EXPECT_EQ(mean[3], 0);
}

TEST(Reduce, WrapsSumsAndProductsOfBytesAround) {
  const std::uint8_t a[] = {200, 16, 255};
  const std::uint8_t b[] = {100, 17, 255};
  const std::vector<const void*> sources = {a, b};
  std::uint8_t result[3];
  reduce_into({.type = DataType::U8}, result, sources, 3);
  EXPECT_EQ(result[0], 44);
  EXPECT_EQ(result[1], 33);
  EXPECT_EQ(result[2], 254);
  reduce_into({.type = DataType::U8, .op = ReduceOp::Product}, result, sources, 3);
  EXPECT_EQ(result[0], 200 * 100 % 256);
  EXPECT_EQ(result[1], 16 * 17 % 256);
  EXPECT_EQ(result[2], 1);
}

TEST(Reduce, TakesEveryByteButZeroAsTrue) {
  const std::uint8_t a[] = {0, 2, 4, 255};
  const std::uint8_t b[] = {0, 1, 0, 254};
  const std::vector<const void*> sources = {a, b};
  const auto combined = [&](ReduceOp op) {
    std::vector<std::uint8_t> result(4);
    reduce_into({.type = DataType::Bool, .op = op}, result.data(), sources, 4);
    return result;
  };
  EXPECT_EQ(combined(ReduceOp::And), (std::vector<std::uint8_t>{0, 1, 0, 1}));
  EXPECT_EQ(combined(ReduceOp::Or), (std::vector<std::uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(combined(ReduceOp::Xor), (std::vector<std::uint8_t>{0, 0, 1, 0}));
}

TEST(Reduce, MultipliesHalvesInF32AndRoundsOnce) {
  // The partial product 2^16 is too large for an f16; the result is not.
  const std::uint16_t big = reference::encode(DataType::F16, 256);
  const std::uint16_t small = reference::encode(DataType::F16, 0.125F);
  const std::vector<const void*> sources = {&big, &big, &small};
  std::uint16_t product = 0;
  reduce_into({.type = DataType::F16, .op = ReduceOp::Product}, &product, sources, 1);
  EXPECT_EQ(reference::decode(DataType::F16, product), 8192.0F);
}

TEST(Reduce, ComputesMinAndMaxInAnyOrder) {
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max}) {
      if (!is_legal(type, op)) continue;
      Sample a{type, 4096, 0};
      Sample b{type, 4096, 0};
      Sample forth{type, 4096, 0};
      Sample back{type, 4096, 0};
      fill(a, type, 1);
      fill(b, type, 2);
      const std::vector<const void*> ab = {a.data(), b.data()};
      const std::vector<const void*> ba = {b.data(), a.data()};
      reduce_into({.type = type, .op = op}, forth.data(), ab, 4096);
      reduce_into({.type = type, .op = op}, back.data(), ba, 4096);
      EXPECT_EQ(std::memcmp(forth.data(), back.data(), forth.bytes()), 0);
    }
  }
}

TEST(Reduce, LetsTwoThreadsShareBuffers) {
  constexpr std::size_t kCount = 1 << 16;
  std::vector<float> a(kCount, 1.0f);
  std::vector<float> b(kCount, 2.0f);
  const auto half = [&](std::size_t first) {
    const std::vector<void*> targets = {a.data() + first, b.data() + first};
    const std::vector<const void*> sources = {a.data() + first, b.data() + first};
    reduce_to_all({}, targets, sources, kCount / 2);
  };
  std::thread other{half, kCount / 2};
  half(0);
  other.join();
  EXPECT_EQ(a, std::vector<float>(kCount, 3.0f));
  EXPECT_EQ(b, a);
}

}  // namespace
}  // namespace sluice::kernels
