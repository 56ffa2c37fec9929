// A training that is interrupted and resumed ends with the same weights as an uninterrupted one.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/train/tiny_training.h"
#include "train/loop/trainer.h"

namespace sluice::train {
namespace {

// Interrupts the training after each of the steps `stops`, and resumes it.
TrainingSummary train_with_stops(TinyRun run, const std::vector<std::int64_t>& stops) {
  const TemporaryFolder folder;
  run.options.run_folder = folder.path() / "run";
  for (const std::int64_t stop : stops) {
    run.options.step_limit = stop;
    const TrainingSummary part = train_tiny(run);
    EXPECT_EQ(part.end, TrainingEnd::StepLimit);
    EXPECT_EQ(part.steps, stop);
    run.options.resume = true;
  }
  run.options.step_limit = 0;
  return train_tiny(run);
}

void expect_same_if_interrupted(const recipe::Recipe& recipe, int ranks) {
  TinyRun run{.options = {.recipe = recipe}, .ranks = ranks};
  const TrainingSummary uninterrupted = train_tiny(run);
  const TrainingSummary resumed = train_with_stops(run, {3, 8});
  EXPECT_EQ(resumed.start_up.first_step, 8);
  EXPECT_EQ(resumed.steps, uninterrupted.steps);
  EXPECT_EQ(resumed.weights_hash, uninterrupted.weights_hash);
  ASSERT_TRUE(uninterrupted.last && resumed.last);
  EXPECT_EQ(resumed.last->correct, uninterrupted.last->correct);
  EXPECT_EQ(resumed.last->loss, uninterrupted.last->loss);
}

TEST(Resume, HasTheSameBits) { expect_same_if_interrupted(tiny_recipe(), 2); }

TEST(Resume, HasTheSameBitsWithOwnRunningStatistics) {
  recipe::Recipe recipe = tiny_recipe();
  recipe.model = "smallconv";
  recipe.augmentation = recipe::AugmentationKind::Shift;
  expect_same_if_interrupted(recipe, 2);
}

TEST(Resume, HasTheSameBitsWithSparseGradientsAndDoubleBuffering) {
  recipe::Recipe recipe = tiny_recipe();
  recipe.sparsity = 0.6;
  recipe.sparse_chunk = 128;
  recipe.weight_decay = 1e-3;
  for (const bool double_buffering : {false, true}) {
    recipe.double_buffering = double_buffering;
    expect_same_if_interrupted(recipe, 2);
  }
}

TEST(Resume, HasTheSameBitsWithLarsAccumulationAndLossScaling) {
  recipe::Recipe recipe = tiny_recipe();
  recipe.optimizer = recipe::OptimizerKind::Lars;
  recipe.rate = 2;
  recipe.rate_place = LearningRateMode::Folded;
  recipe.batch = 4;
  recipe.global_batch = 16;
  recipe.loss_scaling = true;
  recipe.warm_up_epochs = 1;
  expect_same_if_interrupted(recipe, 2);
}

TEST(Resume, HasTheSameBitsWithEveryEpochEnd) {
  for (const recipe::EpochEnd end :
       {recipe::EpochEnd::Drop, recipe::EpochEnd::Fill, recipe::EpochEnd::RunOn}) {
    recipe::Recipe recipe = tiny_recipe();
    recipe.epochs = 3;
    recipe.batch = 7;
    recipe.epoch_end = end;
    expect_same_if_interrupted(recipe, 2);
  }
}

TEST(Resume, ContinuesAfterASignal) {
  const TrainerOptions options{.recipe = tiny_recipe()};
  const TrainingSummary uninterrupted = train_tiny({.options = options, .ranks = 2});
  const TemporaryFolder folder;
  TinyRun run{.options = options, .ranks = 2};
  run.options.run_folder = folder.path() / "run";
  std::vector<std::atomic<int>> stops(2);
  stops[1] = 2;
  run.stops = &stops;
  const TrainingSummary stopped = train_tiny(run);
  EXPECT_EQ(stopped.end, TrainingEnd::Signal);
  EXPECT_LT(stopped.steps, uninterrupted.steps);
  stops[1] = 0;
  run.options.resume = true;
  EXPECT_EQ(train_tiny(run).weights_hash, uninterrupted.weights_hash);
}

TEST(Resume, KeepsTheGlobalBatchOnAnotherNumberOfRanks) {
  const TrainerOptions options{.recipe = tiny_recipe()};
  const TrainingSummary uninterrupted = train_tiny({.options = options, .ranks = 2});
  const TemporaryFolder folder;
  TinyRun run{.options = options, .ranks = 2};
  run.options.run_folder = folder.path() / "run";
  run.options.step_limit = 5;
  train_tiny(run);
  run.options.resume = true;
  run.options.step_limit = 9;
  run.ranks = 1;
  EXPECT_EQ(train_tiny(run).start_up.global_batch, 16);
  run.options.step_limit = 0;
  run.ranks = 4;
  const TrainingSummary resumed = train_tiny(run);
  EXPECT_EQ(resumed.start_up.global_batch, 16);
  EXPECT_EQ(resumed.steps, uninterrupted.steps);
  ASSERT_TRUE(uninterrupted.last && resumed.last);
  // Not the same bits, because sums have another order.
  EXPECT_NEAR(resumed.last->loss, uninterrupted.last->loss, 1e-4 * uninterrupted.last->loss);
}

TEST(Resume, RefusesSettingsThatWouldChangeStepsAlreadyTaken) {
  const TemporaryFolder folder;
  TinyRun run{.options = {.recipe = tiny_recipe()}, .ranks = 2};
  run.options.run_folder = folder.path() / "run";
  run.options.step_limit = 5;
  train_tiny(run);
  run.options.resume = true;
  run.options.step_limit = 0;
  run.options.recipe.momentum = 0.5;
  for (const Result<TrainingSummary>& end : try_tiny(run)) {
    ASSERT_FALSE(end.ok());
    EXPECT_NE(end.status().message().find("momentum"), std::string::npos) << end.status().message();
  }
  run.options.recipe = tiny_recipe();
  run.data.train = 64;
  EXPECT_FALSE(try_tiny(run)[0].ok());
}

TEST(Resume, MayTrainLongerOrToATarget) {
  const TemporaryFolder folder;
  TinyRun run{.options = {.recipe = tiny_recipe()}, .ranks = 2};
  run.options.run_folder = folder.path() / "run";
  EXPECT_EQ(train_tiny(run).steps, 12);
  run.options.resume = true;
  // The run is complete, so it only reports its accuracy.
  const TrainingSummary again = train_tiny(run);
  EXPECT_EQ(again.steps, 12);
  EXPECT_TRUE(again.last.has_value());
  run.options.recipe.epochs = 4;
  run.options.target = 101;
  const TrainingSummary longer = train_tiny(run);
  EXPECT_EQ(longer.start_up.first_step, 12);
  EXPECT_EQ(longer.steps, 24);
  EXPECT_FALSE(longer.target_met);
}

TEST(Resume, KeepsTheLastGoodCheckpointOfARunThatFailed) {
  const TemporaryFolder folder;
  TinyRun run{.options = {.recipe = tiny_recipe()}, .ranks = 2};
  run.options.run_folder = folder.path() / "run";
  run.options.recipe.epochs = 30;
  run.options.recipe.decay = recipe::DecayKind::Step;
  run.options.recipe.drops = {{.at = 1, .factor = 1e20}};
  const TrainingSummary failed = train_tiny(run);
  EXPECT_EQ(failed.end, TrainingEnd::NotFinite);
  run.options.resume = true;
  run.options.step_limit = 7;
  const TrainingSummary resumed = train_tiny(run);
  EXPECT_EQ(resumed.start_up.first_step, 6);
}

TEST(Init, StartsWithANewClassifierForOtherClasses) {
  const TemporaryFolder folder;
  TinyRun run{.options = {.recipe = tiny_recipe()}, .ranks = 2};
  run.options.run_folder = folder.path() / "first";
  const TrainingSummary first = train_tiny(run);
  for (const char* const from : {"first", "first/weights.pt"}) {
    TinyRun next{.options = {.recipe = tiny_recipe()}, .ranks = 2};
    next.options.init = folder.path() / from;
    next.options.recipe.rate = 1e-9;
    next.options.recipe.epochs = 1;
    const TrainingSummary same = train_tiny(next);
    EXPECT_EQ(same.last->correct, first.last->correct) << from;
    RecordedEvents events;
    next.events = &events;
    next.data.classes = 6;
    train_tiny(next);
    ASSERT_EQ(events.notes.size(), 1U);
    EXPECT_NE(events.notes[0].find("4 classes"), std::string::npos) << events.notes[0];
  }
}

}  // namespace
}  // namespace sluice::train
