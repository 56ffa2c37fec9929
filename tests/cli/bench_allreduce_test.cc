// The pattern against a naive all-reduce in f64, which represents all its values exactly.
#include "cli/bench/bench_allreduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sluice::cli {
namespace {

template <class T>
double naive(const std::vector<std::vector<T>>& buffers, std::size_t i, ReduceOp op) {
  double result = static_cast<double>(buffers[0][i]);
  for (std::size_t rank = 1; rank < buffers.size(); ++rank) {
    const auto value = static_cast<double>(buffers[rank][i]);
    if (op == ReduceOp::Min) result = std::min(result, value);
    if (op == ReduceOp::Max) result = std::max(result, value);
    if (op == ReduceOp::Sum || op == ReduceOp::Mean) result += value;
  }
  if (op != ReduceOp::Mean) return result;
  result /= static_cast<double>(buffers.size());
  return std::is_integral_v<T> ? std::trunc(result) : result;
}

template <class T>
void expect_right(DataType type, ReduceOp op, int ranks, std::size_t count) {
  const BenchPattern pattern{type, op, ranks};
  std::vector<std::vector<T>> buffers(static_cast<std::size_t>(ranks), std::vector<T>(count));
  for (Rank rank = 0; rank < ranks; ++rank) pattern.fill(buffers[rank].data(), count, rank);
  const int most = std::min(3, pattern.most_operations());
  for (int operations = 1; operations <= most; ++operations) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto result = static_cast<T>(naive(buffers, i, op));
      for (auto& buffer : buffers) buffer[i] = result;
    }
    ASSERT_FALSE(pattern.check(buffers[0].data(), count, operations))
        << name(type) << " " << name(op) << " " << ranks << " ranks, " << operations;
  }
  // Any other result is an error: a rank's own data, another element's result, one more operation.
  std::vector<T> broken = buffers[0];
  const std::size_t at = count / 2;
  broken[at] = static_cast<T>(broken[at] * 2);
  const auto wrong = pattern.check(broken.data(), count, most);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->element, at);
  EXPECT_EQ(wrong->expected * 2, wrong->found);
  std::vector<T> own(count);
  pattern.fill(own.data(), count, ranks - 1);
  EXPECT_TRUE(pattern.check(own.data(), count, most)) << name(op) << " " << ranks;
}

TEST(BenchPattern, PredictsTheResultOfEveryOperation) {
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Min, ReduceOp::Max}) {
    for (const int ranks : {2, 3, 4, 5, 8, 64}) {
      expect_right<float>(DataType::F32, op, ranks, 3000);
      expect_right<double>(DataType::F64, op, ranks, 3000);
      expect_right<std::int32_t>(DataType::I32, op, ranks, 3000);
      expect_right<std::int64_t>(DataType::I64, op, ranks, 3000);
    }
  }
}

TEST(BenchPattern, PredictsResultsAfterItsValuesWrap) {
  expect_right<float>(DataType::F32, ReduceOp::Sum, 8, 300'000);
  expect_right<float>(DataType::F32, ReduceOp::Max, 3, 1'100'000);
}

TEST(BenchPattern, EveryRankHoldsTheLeastValueSomewhere) {
  constexpr int kRanks = 4;
  const BenchPattern pattern{DataType::I32, ReduceOp::Min, kRanks};
  std::vector<std::vector<std::int32_t>> buffers(kRanks, std::vector<std::int32_t>(kRanks));
  for (Rank rank = 0; rank < kRanks; ++rank) pattern.fill(buffers[rank].data(), kRanks, rank);
  std::vector<bool> had(kRanks);
  for (std::size_t i = 0; i < kRanks; ++i) {
    std::size_t least = 0;
    for (std::size_t rank = 1; rank < kRanks; ++rank) {
      if (buffers[rank][i] < buffers[least][i]) least = rank;
    }
    had[least] = true;
  }
  EXPECT_EQ(std::count(had.begin(), had.end(), true), kRanks);
}

TEST(BenchPattern, SumsStayFinite) {
  for (const DataType type : {DataType::F32, DataType::F16, DataType::BF16, DataType::I32}) {
    for (int ranks = 1; ranks <= 256; ranks *= 2) {
      EXPECT_GE((BenchPattern{type, ReduceOp::Sum, ranks}.most_operations()), 1);
    }
  }
  // A sum of 8 grows by 3 bits each time; an f32 has room for 206 bits above the smallest value.
  EXPECT_EQ((BenchPattern{DataType::F32, ReduceOp::Sum, 8}.most_operations()), 60);
}

}  // namespace
}  // namespace sluice::cli
