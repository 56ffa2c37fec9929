#include "gradient/bucket_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace sluice::gradient {
namespace {

TEST(Readiness, ABucketLeavesAfterThoseBeforeIt) {
  const std::vector<GradientSpec> gradients(4, {"g", 1});
  const PoolLayout layout{gradients, {3, 2, 1, 0}};
  Readiness readiness{layout, {{0, 1}, {1, 2}, {3, 1}}};
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(readiness.mark(2), 0U);
    EXPECT_FALSE(readiness.is_full(1));
    EXPECT_EQ(readiness.mark(1), 0U) << "bucket 1 is full, but bucket 0 is not";
    EXPECT_TRUE(readiness.is_full(1));
    EXPECT_EQ(readiness.mark(3), 2U);
    EXPECT_FALSE(readiness.is_ready(0));
    EXPECT_EQ(readiness.mark(0), 3U);
    const std::vector<std::size_t> marked = {2, 1, 3, 0};
    EXPECT_EQ(readiness.marked(), marked);
    readiness.clear();
    EXPECT_FALSE(readiness.is_ready(3));
  }
}

TEST(Readiness, CountsAsANaiveSearchDoes) {
  std::mt19937 random{5};
  for (int round = 0; round < 200; ++round) {
    const std::vector<GradientSpec> gradients(1 + random() % 20, {"g", 1});
    const PoolLayout layout{gradients, reverse_registration(gradients.size())};
    std::vector<buckets::BucketRange> buckets;
    for (std::size_t first = 0; first < gradients.size(); first += buckets.back().count)
      buckets.push_back({first, std::min(gradients.size() - first, 1 + random() % 4)});
    Readiness readiness{layout, buckets};
    std::vector<std::size_t> order(gradients.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      const std::size_t leavable = readiness.mark(i);
      std::size_t ready = 0;  // slots from the first on
      while (ready < gradients.size() && readiness.is_ready(layout.order()[ready])) ++ready;
      std::size_t expected = 0;
      while (expected < buckets.size() &&
             buckets[expected].first + buckets[expected].count <= ready)
        ++expected;
      ASSERT_EQ(leavable, expected);
    }
  }
}

}  // namespace
}  // namespace sluice::gradient
