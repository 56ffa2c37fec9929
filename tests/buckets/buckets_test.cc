#include "buckets/buckets.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::buckets {
namespace {

std::vector<GradientSize> f32_sizes(const std::vector<std::size_t>& bytes) {
  std::vector<GradientSize> sizes;
  for (const std::size_t each : bytes) sizes.push_back({each, DataType::F32});
  return sizes;
}

TEST(LazyBuckets, CloseOnceTheyHaveThetaBytes) {
  const auto sizes = f32_sizes({40, 60, 10, 200, 8});
  const std::vector<BucketRange> expected = {{0, 2}, {2, 2}, {4, 1}};
  EXPECT_EQ(lazy_buckets(sizes, 100), expected);
}

TEST(LazyBuckets, HoldOneGradientForThetaOneAndAllForAHugeTheta) {
  const auto sizes = f32_sizes({40, 60, 10, 200, 8});
  EXPECT_EQ(lazy_buckets(sizes, 1).size(), 5U);
  EXPECT_EQ(lazy_buckets(sizes, 0).size(), 5U);
  const std::vector<BucketRange> all = {{0, 5}};
  EXPECT_EQ(lazy_buckets(sizes, std::size_t{1} << 40U), all);
  EXPECT_TRUE(lazy_buckets({}, 100).empty());
}

TEST(LazyBuckets, NeverMixTypes) {
  const std::vector<GradientSize> sizes = {
      {8, DataType::F32}, {8, DataType::F32}, {8, DataType::F64}, {8, DataType::F16}};
  const std::vector<BucketRange> expected = {
      {0, 2, DataType::F32}, {2, 1, DataType::F64}, {3, 1, DataType::F16}};
  EXPECT_EQ(lazy_buckets(sizes, 1000), expected);
}

TEST(LazyBuckets, TakeGradientsWithoutElementsWhateverTheirType) {
  const std::vector<GradientSize> sizes = {
      {0, DataType::F64}, {8, DataType::F32}, {0, DataType::F16}, {8, DataType::F32}};
  const std::vector<BucketRange> expected = {{0, 4, DataType::F32}};
  EXPECT_EQ(lazy_buckets(sizes, 1000), expected);
  const std::vector<BucketRange> apart = {{0, 2, DataType::F32}, {2, 2, DataType::F32}};
  EXPECT_EQ(lazy_buckets(sizes, 1), apart);
}

// Checks the promises of the header on the buckets of many random models.
TEST(LazyBuckets, HoldEveryGradientOnceAndCloseNoEarlierThanNecessary) {
  constexpr DataType kTypes[] = {DataType::F32, DataType::F16};
  std::mt19937 random{3};
  for (int round = 0; round < 500; ++round) {
    std::vector<GradientSize> sizes(random() % 30);
    for (GradientSize& each : sizes) each = {random() % 5 * 100, kTypes[random() % 5 == 0]};
    const std::size_t theta = 1 + random() % 600;
    std::size_t next = 0;
    const auto buckets = lazy_buckets(sizes, theta);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      ASSERT_EQ(buckets[b].first, next);
      std::size_t before_last = 0;
      for (std::size_t k = 0; k < buckets[b].count; ++k, ++next) {
        ASSERT_LT(before_last, theta) << "it should be closed already";
        before_last += sizes[next].bytes;
        if (sizes[next].bytes > 0) {
          ASSERT_EQ(sizes[next].type, buckets[b].type);
        }
      }
      if (before_last < theta && b + 1 < buckets.size()) {
        EXPECT_NE(sizes[next].type, buckets[b].type) << "closed without a reason";
      }
    }
    ASSERT_EQ(next, sizes.size());
  }
}

TEST(GroupedBuckets, HaveTheGivenCounts) {
  const std::vector<GradientSize> sizes(161, {64, DataType::F32});
  const std::vector<int> fujitsu = {3, 21, 57, 80};
  const std::vector<BucketRange> expected = {{0, 3}, {3, 21}, {24, 57}, {81, 80}};
  EXPECT_EQ(grouped_buckets(sizes, fujitsu).value(), expected);
}

TEST(GroupedBuckets, AreSplitWhereTheTypeChanges) {
  const std::vector<GradientSize> sizes = {
      {8, DataType::F32}, {8, DataType::BF16}, {8, DataType::BF16}};
  const std::vector<BucketRange> expected = {
      {0, 1, DataType::F32}, {1, 1, DataType::BF16}, {2, 1, DataType::BF16}};
  EXPECT_EQ(grouped_buckets(sizes, std::vector<int>{2, 1}).value(), expected);
}

TEST(GroupedBuckets, RejectCountsThatDoNotAddUp) {
  const std::vector<GradientSize> sizes(160, {64, DataType::F32});
  const Status status = grouped_buckets(sizes, std::vector<int>{3, 21, 57, 80}).status();
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_NE(status.message().find("groups 3, 21, 57, 80 hold 161 gradients, but there are 160"),
            std::string::npos)
      << status.message();
  EXPECT_FALSE(grouped_buckets(sizes, std::vector<int>{161, -1}).ok());
  EXPECT_FALSE(grouped_buckets(sizes, std::vector<int>{160, 0}).ok());
}

}  // namespace
}  // namespace sluice::buckets
