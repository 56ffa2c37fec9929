#include "gradient/sparse/sparsity.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::gradient {
namespace {

using Flags = std::vector<std::uint8_t>;
using Parts = std::vector<GradientPart>;

const std::vector<GradientSpec> kGradients = {{.name = "a", .count = 30},
                                              {.name = "b", .count = 7, .may_be_sparse = false},
                                              {.name = "c", .count = 10}};

Sparsity four_chunks(double sparsity = 0.75) {
  return Sparsity{kGradients, {.sparsity = sparsity, .chunk = 10}};
}

Flags selected(const Sparsity& sparsity) {
  return {sparsity.selected().begin(), sparsity.selected().end()};
}

Parts arrived(const Sparsity& sparsity, std::size_t i) {
  return {sparsity.arrived(i).begin(), sparsity.arrived(i).end()};
}

TEST(Sparsity, SendsAllUntilNormsHaveArrived) {
  Sparsity sparsity = four_chunks();
  sparsity.plan();
  EXPECT_FALSE(sparsity.sparse());
  EXPECT_EQ(selected(sparsity), (Flags{1, 1, 1, 1}));
  sparsity.plan();  // while the first is on its way
  EXPECT_FALSE(sparsity.sparse());
  sparsity.complete(false, std::vector<float>{0, 0, 0, 0});
  EXPECT_FALSE(sparsity.was_sparse());
  sparsity.plan();
  EXPECT_TRUE(sparsity.sparse());
  EXPECT_EQ(selected(sparsity), (Flags{1, 0, 0, 0}));
}

TEST(Sparsity, CountsWhatIsOnItsWayAsSent) {
  Sparsity sparsity = four_chunks();
  sparsity.plan();
  sparsity.complete(false, std::vector<float>{1, 4, 3, 2});
  sparsity.plan();
  EXPECT_EQ(selected(sparsity), (Flags{0, 1, 0, 0}));
  sparsity.plan();
  EXPECT_EQ(selected(sparsity), (Flags{0, 0, 1, 0}));
  // What has arrived meanwhile is what counts, but for what is on its way.
  sparsity.complete(false, std::vector<float>{5, 0, 9, 6});
  sparsity.plan();
  EXPECT_EQ(selected(sparsity), (Flags{0, 0, 0, 1}));
}

TEST(Sparsity, TellsWhatArrivedAndOfHowManySteps) {
  Sparsity sparsity = four_chunks();
  const auto step = [&](bool skipped, const std::vector<float>& norms) {
    sparsity.plan();
    sparsity.complete(skipped, norms);
  };
  step(false, {1, 2, 3, 4});  // all
  EXPECT_EQ(arrived(sparsity, 0), (Parts{{0, 10, 1}, {10, 10, 1}, {20, 10, 1}}));
  EXPECT_EQ(arrived(sparsity, 1), (Parts{{0, 7, 1}}));
  EXPECT_EQ(arrived(sparsity, 2), (Parts{{0, 10, 1}}));
  step(false, {1, 2, 3, 0});  // the last
  EXPECT_EQ(arrived(sparsity, 0), (Parts{}));
  EXPECT_EQ(arrived(sparsity, 1), (Parts{{0, 7, 1}}));
  EXPECT_EQ(arrived(sparsity, 2), (Parts{{0, 10, 1}}));
  step(true, {9, 9, 9, 9});   // the third is lost
  step(false, {1, 2, 0, 1});  // and sent again
  EXPECT_EQ(arrived(sparsity, 0), (Parts{{20, 10, 2}}));
  EXPECT_EQ(arrived(sparsity, 2), (Parts{}));
  step(false, {1, 0, 0, 1});
  EXPECT_EQ(arrived(sparsity, 0), (Parts{{10, 10, 3}}));
  EXPECT_EQ(sparsity.state().steps, 5);
  EXPECT_EQ(sparsity.state().norms, (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(sparsity.state().ages, (std::vector<std::uint32_t>{3, 0, 1, 2}));
}

TEST(Sparsity, WithoutItAllIsWhole) {
  Sparsity sparsity{kGradients, {}};
  EXPECT_EQ(sparsity.chunks().size(), 0U);
  for (int step = 0; step < 3; ++step) {
    sparsity.plan();
    EXPECT_FALSE(sparsity.sparse());
    sparsity.complete(false, {});
    EXPECT_EQ(arrived(sparsity, 0), (Parts{{0, 30, 1}}));
  }
}

}  // namespace
}  // namespace sluice::gradient
