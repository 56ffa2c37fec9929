#include "data/loader/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace sluice::data {
namespace {

recipe::Recipe recipe(int batch, double epochs, recipe::EpochEnd end,
                      std::int64_t global_batch = 0) {
  recipe::Recipe some;
  some.batch = batch;
  some.epochs = epochs;
  some.epoch_end = end;
  some.global_batch = global_batch;
  return some;
}

// The samples of a step, for each backward pass in the order of ranks.
std::vector<SampleRef> step_of(const recipe::EpochTable& plan, std::int64_t step) {
  std::vector<SampleRef> all;
  for (int micro = 0; micro < plan.epoch_of(step).accumulate; ++micro) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      Sampler sampler{plan, rank, 5};
      const auto samples = sampler.samples(step, micro);
      all.insert(all.end(), samples.begin(), samples.end());
    }
  }
  return all;
}

TEST(Sampler, RanksShareAnEpochWithoutOverlapInEqualParts) {
  for (const int ranks : {1, 2, 3, 7}) {
    const recipe::EpochTable plan =
        recipe::make_epoch_table(recipe(4, 2, recipe::EpochEnd::Drop), ranks, 100).value();
    for (const recipe::EpochRow& epoch : plan.epochs) {
      EXPECT_EQ(epoch.steps, 100 / (4 * ranks));
      std::set<std::size_t> seen;
      for (std::int64_t step = epoch.first_step; step < epoch.first_step + epoch.steps; ++step) {
        const auto samples = step_of(plan, step);
        EXPECT_EQ(samples.size(), 4U * static_cast<std::size_t>(ranks));
        for (const SampleRef& one : samples) {
          EXPECT_EQ(one.epoch, static_cast<std::uint64_t>(&epoch - plan.epochs.data()));
          EXPECT_LT(one.sample, 100U);
          EXPECT_TRUE(seen.insert(one.sample).second) << one.sample;
        }
      }
    }
  }
}

// 1, 2, 3 or 6 ranks share a global batch of 12, in one backward pass or several.
TEST(Sampler, AStepDependsOnTheGlobalBatchAlone) {
  for (const recipe::EpochEnd end :
       {recipe::EpochEnd::Drop, recipe::EpochEnd::Fill, recipe::EpochEnd::RunOn}) {
    const recipe::EpochTable one = recipe::make_epoch_table(recipe(12, 3, end), 1, 50).value();
    for (const int ranks : {1, 2, 3, 6}) {
      const recipe::EpochTable many =
          recipe::make_epoch_table(recipe(2, 3, end, 12), ranks, 50).value();
      ASSERT_EQ(many.steps, one.steps);
      for (std::int64_t step = 0; step < one.steps; ++step) {
        EXPECT_EQ(step_of(many, step), step_of(one, step)) << ranks << " ranks, step " << step;
      }
    }
  }
}

TEST(Sampler, AnUnevenEpochEndIsDroppedFilledOrRunOn) {
  const auto samples_of = [](recipe::EpochEnd end) {
    const recipe::EpochTable plan = recipe::make_epoch_table(recipe(4, 2, end), 2, 20).value();
    std::vector<SampleRef> all;
    for (std::int64_t step = 0; step < plan.steps; ++step) {
      const auto samples = step_of(plan, step);
      all.insert(all.end(), samples.begin(), samples.end());
    }
    return all;
  };
  const auto counts = [](const std::vector<SampleRef>& all) {
    std::map<std::uint64_t, std::size_t> by_epoch;
    for (const SampleRef& one : all) ++by_epoch[one.epoch];
    return by_epoch;
  };
  using Counts = std::map<std::uint64_t, std::size_t>;
  EXPECT_EQ(counts(samples_of(recipe::EpochEnd::Drop)), (Counts{{0, 16}, {1, 16}}));
  // Each epoch ends with 4 samples of the next shuffle. The next epoch begins with them again.
  EXPECT_EQ(counts(samples_of(recipe::EpochEnd::Fill)), (Counts{{0, 20}, {1, 24}, {2, 4}}));
  EXPECT_EQ(counts(samples_of(recipe::EpochEnd::RunOn)), (Counts{{0, 20}, {1, 20}}));
  // No sample comes twice in an epoch that runs on.
  std::vector<SampleRef> run_on = samples_of(recipe::EpochEnd::RunOn);
  std::set<std::pair<std::uint64_t, std::size_t>> seen;
  for (const SampleRef& one : run_on) EXPECT_TRUE(seen.insert({one.epoch, one.sample}).second);
}

TEST(Sampler, EveryEpochAndSeedHasItsOwnOrder) {
  const recipe::EpochTable plan =
      recipe::make_epoch_table(recipe(1000, 2, recipe::EpochEnd::Drop), 1, 1000).value();
  const auto order = [&plan](std::uint64_t seed, std::int64_t step) {
    Sampler sampler{plan, 0, seed};
    std::vector<std::size_t> samples;
    for (const SampleRef& one : sampler.samples(step, 0)) samples.push_back(one.sample);
    return samples;
  };
  EXPECT_EQ(order(5, 0), order(5, 0));
  EXPECT_NE(order(5, 0), order(5, 1));
  EXPECT_NE(order(5, 0), order(6, 0));
  EXPECT_FALSE(std::ranges::is_sorted(order(5, 0)));
}

// A resumed training starts in the middle and never asks for the steps before.
TEST(Sampler, StepsMayComeInAnyOrder) {
  const recipe::EpochTable plan =
      recipe::make_epoch_table(recipe(8, 5, recipe::EpochEnd::RunOn), 1, 30).value();
  Sampler forward{plan, 0, 1};
  std::vector<std::vector<SampleRef>> expected;
  for (std::int64_t step = 0; step < plan.steps; ++step) {
    const auto samples = forward.samples(step, 0);
    expected.emplace_back(samples.begin(), samples.end());
  }
  Sampler backward{plan, 0, 1};
  for (std::int64_t step = plan.steps - 1; step >= 0; --step) {
    EXPECT_TRUE(
        std::ranges::equal(backward.samples(step, 0), expected[static_cast<std::size_t>(step)]));
  }
}

// 6000 shuffles of 3 samples: each of the 6 orders is expected 1000 times, with deviation 29.
TEST(Sampler, AllOrdersAreEquallyLikely) {
  const recipe::EpochTable plan =
      recipe::make_epoch_table(recipe(3, 6000, recipe::EpochEnd::Drop), 1, 3).value();
  Sampler sampler{plan, 0, 0};
  std::map<std::vector<std::size_t>, int> counts;
  for (std::int64_t step = 0; step < plan.steps; ++step) {
    std::vector<std::size_t> order;
    for (const SampleRef& one : sampler.samples(step, 0)) order.push_back(one.sample);
    ++counts[order];
  }
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 145);
}

}  // namespace
}  // namespace sluice::data
