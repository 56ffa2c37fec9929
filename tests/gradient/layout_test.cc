#include "gradient/layout.h"

#include <gtest/gtest.h>

namespace sluice::gradient {
namespace {

const std::vector<GradientSpec> kGradients = {
    {"a", 10}, {"b", 1, DataType::F64}, {"none", 0}, {"c", 100, DataType::F16}};

TEST(PoolLayout, AlignsEverySlotAndFollowsTheOrder) {
  const PoolLayout layout{kGradients, {3, 0, 2, 1}};
  EXPECT_EQ(layout.offset(3), 0U);
  EXPECT_EQ(layout.offset(0), 256U);  // 200 bytes before it
  EXPECT_EQ(layout.offset(2), 320U);
  EXPECT_EQ(layout.offset(1), 320U) << "nothing lies before it";
  EXPECT_EQ(layout.bytes(), 384U);
  EXPECT_EQ(layout.begin(4), layout.bytes());
  EXPECT_EQ(layout.position(1), 3U);
  EXPECT_EQ(layout.bytes_of(3), 200U);
  EXPECT_EQ(layout.sizes()[0].type, DataType::F16);
}

TEST(PoolLayout, IsAsLargeInAnyOrder) {
  EXPECT_EQ((PoolLayout{kGradients, {0, 1, 2, 3}}.bytes()), 384U);
  EXPECT_EQ((PoolLayout{{}, {}}.bytes()), 0U);
}

TEST(ObservedOrder, PutsWhatWasNotSeenLastInReverse) {
  const std::vector<std::size_t> expected = {2, 0, 4, 3, 1};
  EXPECT_EQ(observed_order({2, 0}, 5), expected);
  const std::vector<std::size_t> reverse = {2, 1, 0};
  EXPECT_EQ(reverse_registration(3), reverse);
}

}  // namespace
}  // namespace sluice::gradient
