#include "train/loop/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/libtorch/torch_ranks.h"
#include "tests/train/tiny_training.h"
#include "train/loop/training_batches.h"

namespace sluice::train {
namespace {

TEST(BatchNumbers, CountTheBatchesOfAllSteps) {
  recipe::EpochTable epoch_table;
  epoch_table.epochs = {{.first_step = 0, .steps = 3, .batch = 4, .accumulate = 1},
                        {.first_step = 3, .steps = 2, .batch = 4, .accumulate = 3},
                        {.first_step = 5, .steps = 2, .batch = 4, .accumulate = 2}};
  epoch_table.steps = 7;
  const BatchNumbers numbers{epoch_table};
  std::int64_t number = 0;
  for (std::int64_t step = 0; step < epoch_table.steps; ++step) {
    EXPECT_EQ(numbers.first_of(step), number);
    const int parts = step < 3 ? 1 : step < 5 ? 3 : 2;
    for (int part = 0; part < parts; ++part) {
      EXPECT_EQ(numbers.position_of(number++), (BatchPosition{step, part}));
    }
  }
  EXPECT_EQ(numbers.first_of(epoch_table.steps), number);
}

TEST(Trainer, TwoRanksLearnAndReportTheRun) {
  RecordedEvents events;
  TrainerOptions options{.recipe = tiny_recipe()};
  options.recipe.epochs = 4;
  const TrainingSummary summary = train_tiny({.options = options, .ranks = 2, .events = &events});
  EXPECT_EQ(summary.end, TrainingEnd::Done);
  EXPECT_EQ(summary.steps, 4 * (96 / 16));
  EXPECT_DOUBLE_EQ(summary.epochs, 4);
  ASSERT_TRUE(summary.last);
  EXPECT_GT(summary.last->accuracy, 90);
  EXPECT_FALSE(summary.last->top5.has_value());
  EXPECT_GT(summary.images_per_s, 0);
  EXPECT_GE(summary.exposed_comm_fraction, 0);
  EXPECT_LT(summary.exposed_comm_fraction, 1);
  EXPECT_LE(summary.start_up.total_s, summary.total_s);

  ASSERT_EQ(events.start_ups.size(), 1U);
  EXPECT_EQ(events.start_ups[0].ranks, 2);
  EXPECT_EQ(events.start_ups[0].samples, 96);
  EXPECT_EQ(events.start_ups[0].steps, 24);
  EXPECT_EQ(events.start_ups[0].tensors, 10);
  ASSERT_EQ(events.evaluations.size(), 4U);
  for (const EvaluationReport& evaluation : events.evaluations) EXPECT_EQ(evaluation.samples, 37);
  EXPECT_FALSE(events.steps.empty());
}

// A step has the same samples on any number of ranks.
TEST(Trainer, OneRankAndTwoWithTheSameGlobalBatchTrainAlike) {
  TrainerOptions options{.recipe = tiny_recipe()};
  options.recipe.batch = 16;
  const TrainingSummary one = train_tiny({.options = options, .ranks = 1});
  options.recipe.batch = 8;
  const TrainingSummary two = train_tiny({.options = options, .ranks = 2});
  options.recipe.batch = 4;
  options.recipe.global_batch = 16;
  const TrainingSummary accumulated = train_tiny({.options = options, .ranks = 2});
  ASSERT_TRUE(one.last && two.last && accumulated.last);
  EXPECT_EQ(one.steps, two.steps);
  EXPECT_EQ(one.steps, accumulated.steps);
  // Sums have another order; the tolerance covers f32 rounding over 12 steps.
  EXPECT_NEAR(one.last->loss, two.last->loss, 1e-4 * one.last->loss);
  EXPECT_NEAR(one.last->loss, accumulated.last->loss, 1e-4 * one.last->loss);
  EXPECT_NEAR(one.loss, two.loss, 1e-4 * one.loss);
}

TEST(Trainer, TheSameRunTwiceHasTheSameBits) {
  TrainerOptions options{.recipe = tiny_recipe()};
  const TrainingSummary one = train_tiny({.options = options, .ranks = 2});
  const TrainingSummary again = train_tiny({.options = options, .ranks = 2});
  EXPECT_EQ(one.weights_hash, again.weights_hash);
  options.recipe.seed = 6;
  EXPECT_NE(train_tiny({.options = options, .ranks = 2}).weights_hash, one.weights_hash);
}

TEST(Trainer, EveryEpochEndTakesItsStepsAndEnds) {
  // 96 samples, 2 ranks x 10: an epoch has 4.8 steps.
  for (const auto& [kind, steps] :
       {std::pair{recipe::EpochEnd::Drop, 12}, std::pair{recipe::EpochEnd::Fill, 15},
        std::pair{recipe::EpochEnd::RunOn, 15}}) {
    TrainerOptions options{.recipe = tiny_recipe()};
    options.recipe.epochs = 3;
    options.recipe.batch = 10;
    options.recipe.epoch_end = kind;
    const TrainingSummary summary = train_tiny({.options = options, .ranks = 2});
    EXPECT_EQ(summary.end, TrainingEnd::Done);
    EXPECT_EQ(summary.steps, steps);
  }
}

TEST(Trainer, EvaluationCountsEverySampleOnceAtAnyNumberOfRanks) {
  std::vector<std::int64_t> correct;
  for (const int ranks : {1, 3}) {
    TrainerOptions options{.recipe = tiny_recipe()};
    options.recipe.batch = 12 / ranks;
    const TrainingSummary summary = train_tiny({.options = options, .ranks = ranks});
    ASSERT_TRUE(summary.last);
    EXPECT_EQ(summary.last->samples, 37);
    EXPECT_NEAR(summary.last->accuracy, 100.0 * static_cast<double>(summary.last->correct) / 37,
                1e-9);
  }
}

TEST(Trainer, TopFiveIsCountedWithAHundredClassesOrMore) {
  TrainerOptions options{.recipe = tiny_recipe()};
  options.recipe.epochs = 1;
  const TrainingSummary summary =
      train_tiny({.options = options, .ranks = 2, .data = {.train = 112, .classes = 100}});
  ASSERT_TRUE(summary.last && summary.last->top5);
  EXPECT_GE(*summary.last->top5, summary.last->accuracy);
}

TEST(Trainer, StopsAtItsTarget) {
  RecordedEvents events;
  TrainerOptions options{.recipe = tiny_recipe(), .target = 60};
  options.recipe.epochs = 50;
  const TrainingSummary summary = train_tiny({.options = options, .ranks = 2, .events = &events});
  EXPECT_EQ(summary.end, TrainingEnd::Target);
  EXPECT_TRUE(summary.target_met);
  ASSERT_TRUE(summary.last);
  EXPECT_GE(summary.last->accuracy, 60);
  EXPECT_LT(summary.epochs, 50);
  EXPECT_GT(summary.seconds_to_target, 0);
  EXPECT_LE(summary.seconds_to_target, summary.total_s);
}

TEST(Trainer, ReportsThatItsTargetWasNotMet) {
  TrainerOptions options{.recipe = tiny_recipe(), .target = 100.5};
  options.recipe.epochs = 1;
  const TrainingSummary summary = train_tiny({.options = options});
  EXPECT_EQ(summary.end, TrainingEnd::Done);
  EXPECT_FALSE(summary.target_met);
}

TEST(Trainer, ALossThatIsNotFiniteEndsTheRunAndReportsWhy) {
  TrainerOptions options{.recipe = tiny_recipe()};
  options.recipe.rate = 1e20;
  options.recipe.epochs = 100;
  const TrainingSummary summary = train_tiny({.options = options, .ranks = 2});
  EXPECT_EQ(summary.end, TrainingEnd::NotFinite);
  EXPECT_NE(summary.why.find("not finite for 20 steps"), std::string::npos) << summary.why;
  EXPECT_GE(summary.steps, 20);
  EXPECT_LT(summary.epochs, 100);
}

TEST(Trainer, ARequestToStopAtOneRankStopsAll) {
  std::vector<std::atomic<int>> stops(2);
  RecordedEvents events;
  events.on_step = [&](const StepReport& report) {
    if (report.step > 5) stops[1] = 15;
  };
  TrainerOptions options{.recipe = tiny_recipe()};
  options.recipe.epochs = 1e6;
  const auto ends = try_tiny({.options = options, .ranks = 2, .events = &events, .stops = &stops});
  for (const Result<TrainingSummary>& end : ends) {
    ASSERT_TRUE(end.ok()) << end.status().message();
    EXPECT_EQ(end.value().end, TrainingEnd::Signal);
    EXPECT_EQ(end.value().signal, 15);
    EXPECT_EQ(end.value().steps, ends[0].value().steps);
  }
}

TEST(Trainer, ReportsOnceThatTheProcessorComputesInF32) {
  RecordedEvents events;
  TrainerOptions options{.recipe = tiny_recipe(), .step_limit = 3};
  options.recipe.compute = recipe::Compute::F16;
  const TrainingSummary summary = train_tiny({.options = options, .ranks = 2, .events = &events});
  EXPECT_EQ(summary.end, TrainingEnd::StepLimit);
  EXPECT_EQ(summary.steps, 3);
  ASSERT_EQ(events.notes.size(), 1U);
  EXPECT_NE(events.notes[0].find("f16"), std::string::npos);
}

TEST(Trainer, WritesItsRecordMetricsAndTimeline) {
  const TemporaryFolder folder;
  TrainerOptions options{.recipe = tiny_recipe(), .run_folder = folder.path() / "run"};
  options.recipe.epochs = 4;
  train_tiny({.options = options, .ranks = 2});
  std::ifstream record_file{options.run_folder / "run.json"};
  const auto record = nlohmann::json::parse(record_file);
  EXPECT_EQ(record["ranks"], 2);
  EXPECT_EQ(record["classes"].size(), 4U);
  EXPECT_EQ(record["settings"]["batch"], "8");
  EXPECT_EQ(record["summary"]["end"], "done");
  std::ifstream metrics{options.run_folder / "metrics.jsonl"};
  int evaluations = 0;
  for (std::string line; std::getline(metrics, line);)
    evaluations += nlohmann::json::parse(line)["kind"] == "evaluation" ? 1 : 0;
  EXPECT_EQ(evaluations, 4);
  std::ifstream timeline_file{options.run_folder / "timeline.json"};
  const auto timeline = nlohmann::json::parse(timeline_file);
  std::map<std::string, int> seen;
  for (const auto& event : timeline["traceEvents"]) ++seen[event["name"]];
  EXPECT_EQ(seen["forward"], 8);
  EXPECT_EQ(seen["backward"], 8);
  EXPECT_EQ(seen["optimizer"], 8);
  EXPECT_EQ(timeline["dropped"], 0);
}

TEST(Trainer, ACheckpointHasTheAccuracyOfItsRun) {
  const TemporaryFolder folder;
  TrainerOptions options{.recipe = tiny_recipe(), .run_folder = folder.path() / "run"};
  options.recipe.model = "smallconv";
  options.recipe.epochs = 0.01;
  const std::atomic<int> no_stop{0};
  std::vector<EvaluationReport> evaluated(3);
  std::int64_t correct = 0;
  std::int64_t steps = 0;
  libtorch::run_torch_ranks(2, [&](Communicator& communicator) {
    const Result<TrainingSummary> trained =
        train([&] { return communicator; }, options, nullptr, no_stop);
    ASSERT_TRUE(trained.ok()) << trained.status().message();
    if (communicator.rank() != 0) return;
    correct = trained.value().last->correct;
    steps = trained.value().steps;
  });
  libtorch::run_torch_ranks(3, [&](Communicator& communicator) {
    const Result<EvaluationReport> report = evaluate_checkpoint(
        [&] { return communicator; }, {.checkpoint = options.run_folder}, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().message();
    evaluated[static_cast<std::size_t>(communicator.rank())] = report.value();
  });
  for (const EvaluationReport& report : evaluated) {
    EXPECT_EQ(report.samples, 2000);
    EXPECT_EQ(report.correct, correct);
    EXPECT_EQ(report.step, steps);
  }
}

TEST(Trainer, EveryBatchNormTrains) {
  for (const recipe::BatchNormMode mode :
       {recipe::BatchNormMode::Local, recipe::BatchNormMode::Synchronised,
        recipe::BatchNormMode::LastBatch}) {
    TrainerOptions options{.recipe = tiny_recipe()};
    options.recipe.model = "smallconv";
    options.recipe.batch_norm = mode;
    options.recipe.epochs = 4;
    const TrainingSummary summary = train_tiny({.options = options, .ranks = 2});
    ASSERT_TRUE(summary.last);
    EXPECT_GT(summary.last->accuracy, 60);
  }
}

}  // namespace
}  // namespace sluice::train
