#include "recipe/epoch_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "recipe/learning_rate.h"

namespace sluice::recipe {
namespace {

Recipe recipe_with(double epochs, int batch, EpochEnd end = EpochEnd::Drop) {
  Recipe recipe;
  recipe.model = "lenet";
  recipe.epochs = epochs;
  recipe.batch = batch;
  recipe.epoch_end = end;
  return recipe;
}

TEST(EpochTable, DropLeavesOutSamplesThatDoNotFillAStep) {
  const EpochTable table = make_epoch_table(recipe_with(3, 8), 2, 100).value();
  EXPECT_EQ(table.steps, 3 * 6);
  ASSERT_EQ(table.epochs.size(), 3U);
  for (int e = 0; e < 3; ++e) {
    EXPECT_EQ(table.epochs[e].first_step, 6 * e);
    EXPECT_EQ(table.epochs[e].steps, 6);
    EXPECT_EQ(table.first_sample(6 * e), 100 * e);
    EXPECT_EQ(table.first_sample(6 * e + 5), 100 * e + 80);
    EXPECT_EQ(table.epoch_at(6 * e), e);
    EXPECT_DOUBLE_EQ(table.epoch_at(6 * e + 3), e + 0.5);
  }
  EXPECT_EQ(table.epoch_at(18), 3);
}

TEST(EpochTable, FillBorrowsFromTheNextShuffle) {
  const EpochTable table = make_epoch_table(recipe_with(2, 8, EpochEnd::Fill), 2, 100).value();
  EXPECT_EQ(table.steps, 14);
  EXPECT_EQ(table.first_sample(6), 96) << "4 samples of this epoch, 12 of the next";
  EXPECT_EQ(table.first_sample(7), 100) << "the next epoch still starts at its first sample";
  EXPECT_EQ(table.epoch_at(7), 1);
}

TEST(EpochTable, RunOnIsOneStream) {
  for (const double epochs : {1.0, 3.0, 2.7, 7.0}) {
    for (const int batch : {1, 7, 33, 50}) {
      const EpochTable table =
          make_epoch_table(recipe_with(epochs, batch, EpochEnd::RunOn), 2, 100).value();
      EXPECT_EQ(table.steps, std::ceil(std::round(epochs * 100) / (2.0 * batch)));
      for (std::int64_t step = 0; step < table.steps; ++step) {
        ASSERT_EQ(table.first_sample(step), step * 2 * batch);
        ASSERT_DOUBLE_EQ(table.epoch_at(step), static_cast<double>(step) * 2 * batch / 100);
        const auto epoch = static_cast<std::size_t>(step * 2 * batch / 100);
        ASSERT_EQ(&table.epoch_of(step), &table.epochs[epoch]);
      }
    }
  }
}

TEST(EpochTable, AFractionOfAnEpochIsAFractionOfItsSteps) {
  const EpochTable table = make_epoch_table(recipe_with(2.5, 5), 2, 100).value();
  EXPECT_EQ(table.steps, 25);
  EXPECT_EQ(table.epoch_at(25), 2.5);
  EXPECT_EQ(make_epoch_table(recipe_with(0.1, 5), 2, 100).value().steps, 1);
  EXPECT_EQ(make_epoch_table(recipe_with(0.05, 5), 2, 100).status().message(),
            "0.05 epochs of 100 samples are less than one step");
}

TEST(EpochTable, TheBatchGrowsAtItsEpochs) {
  Recipe recipe = recipe_with(4, 8);
  recipe.batch_phases = {{1, 16}, {3, 25}};
  const EpochTable table = make_epoch_table(recipe, 2, 100).value();
  ASSERT_EQ(table.epochs.size(), 4U);
  EXPECT_EQ(table.epochs[0].batch, 8);
  EXPECT_EQ(table.epochs[1].batch, 16);
  EXPECT_EQ(table.epochs[2].batch, 16);
  EXPECT_EQ(table.epochs[3].batch, 25);
  EXPECT_EQ(table.steps, 6 + 3 + 3 + 2);
  EXPECT_EQ(learning_rate_at(recipe, table, 0), learning_rate_at(recipe, table, 13))
      << "the learning rate follows the first batch";

  recipe.epoch_end = EpochEnd::RunOn;
  const EpochTable stream = make_epoch_table(recipe, 2, 100).value();
  std::int64_t position = 0;
  for (std::int64_t step = 0; step < stream.steps; ++step) {
    const int batches[] = {8, 16, 16, 25};
    ASSERT_EQ(stream.first_sample(step), position);
    ASSERT_EQ(stream.epoch_of(step).batch, batches[position / 100]);
    position += 2 * batches[position / 100];
  }
  EXPECT_GE(position, 400);
  EXPECT_LT(position - 50, 400);
}

TEST(EpochTable, AccumulatesGradientsToReachAGlobalBatch) {
  Recipe recipe = recipe_with(1, 32);
  const auto planned = [&](std::int64_t global, int ranks) {
    recipe.global_batch = global;
    const EpochRow epoch = make_epoch_table(recipe, ranks, 100000).value().epochs[0];
    EXPECT_EQ(epoch.global_batch, global);
    EXPECT_EQ(std::int64_t{epoch.batch} * epoch.accumulate * ranks, global);
    EXPECT_LE(epoch.batch, 32);
    return std::pair{epoch.batch, epoch.accumulate};
  };
  EXPECT_EQ(planned(8192, 2), (std::pair{32, 128}));
  EXPECT_EQ(planned(64, 2), (std::pair{32, 1}));
  EXPECT_EQ(planned(16, 2), (std::pair{8, 1})) << "less than one batch for each rank";
  EXPECT_EQ(planned(96, 2), (std::pair{24, 2}));
  EXPECT_EQ(planned(64 * 9, 4), (std::pair{24, 6}));
}

TEST(EpochTable, AGlobalBatchGrowsWithTheBatch) {
  Recipe recipe = recipe_with(2, 32);
  recipe.global_batch = 256;
  recipe.batch_phases = {{1, 64}};
  const EpochTable table = make_epoch_table(recipe, 2, 10000).value();
  EXPECT_EQ(table.epochs[1].global_batch, 512);
  EXPECT_EQ(table.epochs[1].batch, 64);
  EXPECT_EQ(table.epochs[1].accumulate, 4);
}

TEST(EpochTable, ErrorsSayWhichBatchFits) {
  const auto error_of = [](Recipe recipe, std::int64_t global, int ranks, std::int64_t samples) {
    recipe.global_batch = global;
    return make_epoch_table(recipe, ranks, samples).status().message();
  };
  const Recipe recipe = recipe_with(1, 64);
  EXPECT_EQ(error_of(recipe, 0, 4, 100),
            "100 samples are fewer than one global batch of 256 (64 x 4 ranks): use a batch of at "
            "most 25");
  EXPECT_EQ(
      error_of(recipe, 512, 4, 100),
      "100 samples are fewer than one global batch of 512 (64 x 4 ranks x 2 backward passes): use "
      "a global_batch of at most 100");
  EXPECT_EQ(error_of(recipe, 0, 4, 3),
            "3 samples are fewer than one global batch of 256 (64 x 4 ranks): use at most 3 ranks");
  EXPECT_EQ(error_of(recipe, 100, 3, 1000),
            "a global batch of 100 cannot be shared evenly by 3 ranks: use 99 or 102");
  EXPECT_EQ(error_of(recipe, 2 * 1009, 2, 10000),
            "a global batch of 2018 is 1009 samples per rank, which cannot be split into equal "
            "backward passes of about 64: use 1920 or 2048");
  EXPECT_EQ(error_of(recipe, 0, 0, 10), "0 ranks cannot train on 10 samples");
}

TEST(EpochTable, FindsStepsByEpoch) {
  for (const EpochEnd end : {EpochEnd::Drop, EpochEnd::Fill, EpochEnd::RunOn}) {
    Recipe recipe = recipe_with(4, 7, end);
    recipe.batch_phases = {{2, 11}};
    const EpochTable table = make_epoch_table(recipe, 2, 100).value();
    for (const double epoch : {0.0, 0.01, 0.5, 1.0, 2.3, 3.99, 9.0}) {
      std::int64_t first = 0;
      while (first < table.steps && table.epoch_at(first) < epoch) ++first;
      EXPECT_EQ(table.step_at(epoch), first) << epoch;
    }
  }
}

TEST(EpochTable, TheLearningRateFollowsTheGlobalBatch) {
  Recipe recipe = recipe_with(1, 32);
  recipe.rate = 0.1;
  recipe.rate_batch = 256;
  const auto rate = [&](LearningRateScaling scaling, int ranks) {
    recipe.rate_scaling = scaling;
    return learning_rate_at(recipe, make_epoch_table(recipe, ranks, 100000).value(), 0);
  };
  EXPECT_DOUBLE_EQ(rate(LearningRateScaling::Linear, 256), 3.2);
  EXPECT_DOUBLE_EQ(rate(LearningRateScaling::Linear, 2), 0.025);
  EXPECT_DOUBLE_EQ(rate(LearningRateScaling::Sqrt, 128), 0.4);
  EXPECT_DOUBLE_EQ(rate(LearningRateScaling::None, 128), 0.1);
  recipe.global_batch = 8192;
  EXPECT_DOUBLE_EQ(rate(LearningRateScaling::Linear, 2), 3.2) << "with accumulation too";
}

// The published polynomial. It counts epochs, also while batches grow.
TEST(EpochTable, WarmUpAndPolynomialCountEpochs) {
  Recipe recipe = recipe_with(10, 10);
  recipe.batch_phases = {{4, 20}};
  recipe.rate = 2;
  recipe.rate_scaling = LearningRateScaling::None;
  recipe.warm_up_epochs = 2;
  recipe.warm_up_from = 0.25;
  recipe.decay = DecayKind::Polynomial;
  recipe.poly_power = 2;
  recipe.poly_end = 0.1;
  const EpochTable table = make_epoch_table(recipe, 1, 200).value();
  for (std::int64_t step = 0; step < table.steps; ++step) {
    const double epoch =
        step < 80 ? static_cast<double>(step) / 20 : 4 + static_cast<double>(step - 80) / 10;
    const double expected = epoch < 2 ? 2 * (0.25 + 0.75 * epoch / 2)
                                      : 2 * (0.9 * std::pow(1 - (epoch - 2) / 8, 2) + 0.1);
    ASSERT_NEAR(learning_rate_at(recipe, table, step), expected, 1e-12) << step;
  }
  recipe.poly_epochs = 4;
  EXPECT_NEAR(learning_rate_at(recipe, table, table.step_at(4)), 2 * (0.9 * 0.25 + 0.1), 1e-12);
  EXPECT_NEAR(learning_rate_at(recipe, table, table.step_at(7)), 0.2, 1e-12);
}

TEST(EpochTable, ATrainingMayEndWithinItsWarmUp) {
  Recipe recipe = recipe_with(1, 10);
  recipe.warm_up_epochs = 36;
  recipe.decay = DecayKind::Polynomial;
  recipe.rate_scaling = LearningRateScaling::None;
  recipe.rate = 36;
  const EpochTable table = make_epoch_table(recipe, 1, 100).value();
  EXPECT_DOUBLE_EQ(learning_rate_at(recipe, table, 5), 0.5);
}

std::vector<std::int64_t> evaluations(const Recipe& recipe, const EpochTable& table) {
  std::vector<std::int64_t> after;
  for (std::int64_t step = 0; step < table.steps; ++step) {
    if (evaluates_after(recipe, table, step)) after.push_back(step + 1);
  }
  return after;
}

TEST(EpochTable, EvaluatesByEpochsAndAtTheEnd) {
  Recipe recipe = recipe_with(5, 10);
  const EpochTable table = make_epoch_table(recipe, 1, 100).value();
  EXPECT_EQ(evaluations(recipe, table), (std::vector<std::int64_t>{10, 20, 30, 40, 50}));
  recipe.evaluate_every = 2;
  EXPECT_EQ(evaluations(recipe, table), (std::vector<std::int64_t>{20, 40, 50}));
  recipe.evaluate_first = 1;
  EXPECT_EQ(evaluations(recipe, table), (std::vector<std::int64_t>{10, 30, 50}));
  recipe.evaluate_first = 0;
  recipe.evaluate_every = 0.1;
  EXPECT_EQ(evaluations(recipe, table).size(), 50U) << "0.1 is not a binary fraction";

  recipe.checkpoint_every = 0;
  for (std::int64_t step = 0; step < 49; ++step)
    EXPECT_FALSE(checkpoints_after(recipe, table, step));
  EXPECT_TRUE(checkpoints_after(recipe, table, 49));

  recipe = recipe_with(3, 30, EpochEnd::RunOn);
  EXPECT_EQ(evaluations(recipe, make_epoch_table(recipe, 1, 100).value()),
            (std::vector<std::int64_t>{4, 7, 10}));
}

}  // namespace
}  // namespace sluice::recipe
