#include "gradient/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace sluice::gradient {
namespace {

const std::vector<GradientSpec> kGradients = {
    {"a", 10}, {"b", 1, DataType::F64}, {"none", 0}, {"c", 100, DataType::F16}};

TEST(PoolLayout, AlignsEverySlotInTheGivenOrder) {
  const PoolLayout layout{kGradients, {3, 0, 2, 1}};
  EXPECT_EQ(layout.offset(3), 0U);
  EXPECT_EQ(layout.offset(0), 256U);  // 200 bytes before it
  EXPECT_EQ(layout.offset(2), 320U);
  EXPECT_EQ(layout.offset(1), 320U) << "the gradient before it is empty";
  EXPECT_EQ(layout.bytes(), 384U);
  EXPECT_EQ(layout.begin(4), layout.bytes());
  EXPECT_EQ(layout.position(1), 3U);
  EXPECT_EQ(layout.bytes_of(3), 200U);
  EXPECT_EQ(layout.sizes()[0].type, DataType::F16);
}

TEST(PoolLayout, HasTheSameSizeInAnyOrder) {
  EXPECT_EQ((PoolLayout{kGradients, {0, 1, 2, 3}}.bytes()), 384U);
  EXPECT_EQ((PoolLayout{{}, {}}.bytes()), 0U);
}

TEST(ObservedOrder, EndsWithTheUnseenGradientsInReverse) {
  const std::vector<std::size_t> expected = {2, 0, 4, 3, 1};
  EXPECT_EQ(observed_order({2, 0}, 5), expected);
  const std::vector<std::size_t> reverse = {2, 1, 0};
  EXPECT_EQ(observed_order({}, 3), reverse);
}

TEST(Readiness, ABucketIsSentAfterAllBucketsBeforeIt) {
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

TEST(Readiness, AgreesWithANaiveSearch) {
  std::mt19937 random{5};
  for (int round = 0; round < 200; ++round) {
    const std::vector<GradientSpec> gradients(1 + random() % 20, {"g", 1});
    const PoolLayout layout{gradients, observed_order({}, gradients.size())};
    std::vector<buckets::BucketRange> buckets;
    for (std::size_t first = 0; first < gradients.size(); first += buckets.back().count)
      buckets.push_back({first, std::min(gradients.size() - first, 1 + random() % 4)});
    Readiness readiness{layout, buckets};
    std::vector<std::size_t> order(gradients.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      const std::size_t sendable = readiness.mark(i);
      std::size_t ready = 0;  // leading slots
      while (ready < gradients.size() && readiness.is_ready(layout.order()[ready])) ++ready;
      std::size_t expected = 0;
      while (expected < buckets.size() &&
             buckets[expected].first + buckets[expected].count <= ready)
        ++expected;
      ASSERT_EQ(sendable, expected);
    }
  }
}

}  // namespace
}  // namespace sluice::gradient
