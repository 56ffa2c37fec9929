#include "data/loader/epoch_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace sluice::data {
namespace {

// The samples of a step, rank after rank.
std::vector<std::size_t> step_of(EpochSamplerOptions options, std::uint64_t epoch,
                                 std::size_t step) {
  std::vector<std::size_t> all;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
    EpochSampler sampler{options};
    sampler.start_epoch(epoch);
    const auto batch = sampler.batch(step);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(EpochSampler, RanksShareAnEpochWithoutOverlapInEqualParts) {
  for (const int ranks : {1, 2, 3, 7}) {
    const EpochSamplerOptions options{.samples = 100, .batch = 4, .ranks = ranks, .seed = 5};
    const std::size_t steps = EpochSampler{options}.steps();
    EXPECT_EQ(steps, 100 / (4 * static_cast<std::size_t>(ranks)));
    std::set<std::size_t> seen;
    for (std::size_t step = 0; step < steps; ++step) {
      const auto samples = step_of(options, 3, step);
      EXPECT_EQ(samples.size(), 4U * static_cast<std::size_t>(ranks));
      for (const std::size_t sample : samples) {
        EXPECT_LT(sample, 100U);
        EXPECT_TRUE(seen.insert(sample).second) << sample;
      }
    }
  }
}

TEST(EpochSampler, AStepDependsOnTheGlobalBatchAndNotOnItsRanks) {
  const auto one = step_of({.samples = 50, .batch = 12, .ranks = 1, .seed = 5}, 2, 3);
  EXPECT_EQ(step_of({.samples = 50, .batch = 4, .ranks = 3, .seed = 5}, 2, 3), one);
  EXPECT_EQ(step_of({.samples = 50, .batch = 2, .ranks = 6, .seed = 5}, 2, 3), one);
}

TEST(EpochSampler, EveryEpochAndSeedHasItsOwnOrder) {
  const EpochSamplerOptions options{.samples = 1000, .batch = 1000, .seed = 5};
  EpochSamplerOptions other = options;
  other.seed = 6;
  const auto first = step_of(options, 0, 0);
  EXPECT_EQ(step_of(options, 0, 0), first);
  EXPECT_NE(step_of(options, 1, 0), first);
  EXPECT_NE(step_of(other, 0, 0), first);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

// Epochs may be entered at any of them: a resumed run starts in the middle.
TEST(EpochSampler, AnEpochDoesNotDependOnTheOnesBefore) {
  EpochSampler straight{{.samples = 64, .batch = 8}};
  EpochSampler wandering{{.samples = 64, .batch = 8}};
  wandering.start_epoch(9);
  wandering.start_epoch(4);
  straight.start_epoch(4);
  for (std::size_t step = 0; step < 8; ++step) {
    EXPECT_TRUE(std::ranges::equal(straight.batch(step), wandering.batch(step)));
  }
}

// Of 6 orders of 3 samples each comes up about as often: 6000 draws, 1000 +- 5 deviations of 29.
TEST(EpochSampler, AllOrdersAreAlikeLikely) {
  std::vector<int> counts(27, 0);
  EpochSampler sampler{{.samples = 3, .batch = 3}};
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) {
    sampler.start_epoch(epoch);
    const auto batch = sampler.batch(0);
    ++counts[batch[0] * 9 + batch[1] * 3 + batch[2]];
  }
  int orders = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++orders;
    EXPECT_NEAR(count, 1000, 145);
  }
  EXPECT_EQ(orders, 6);
}

TEST(EpochSampler, EvaluationTakesEverySampleOnceInOrder) {
  EpochSamplerOptions options{.samples = 50, .batch = 8, .ranks = 3, .seed = 5, .evaluation = true};
  std::vector<std::size_t> all;
  const std::size_t steps = EpochSampler{options}.steps();
  EXPECT_EQ(steps, 3U);
  for (std::size_t step = 0; step < steps; ++step) {
    const auto samples = step_of(options, 7, step);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::vector<std::size_t> expected(50);
  for (std::size_t i = 0; i < 50; ++i) expected[i] = i;
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace sluice::data
