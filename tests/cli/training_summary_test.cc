// The text and JSON of a made-up summary.
#include "cli/train/training_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/base/has.h"

namespace sluice::cli {
namespace {

train::TrainingSummary made_up() {
  train::TrainingSummary summary;
  summary.ranks = 2;
  summary.steps = 1496;
  summary.epochs = 8;
  summary.loss = 0.0712;
  summary.last = train::EvaluationReport{
      .step = 1496, .epoch = 8, .samples = 2000, .correct = 1957, .accuracy = 97.85};
  summary.best = train::EvaluationReport{
      .step = 1309, .epoch = 7, .samples = 2000, .correct = 1958, .accuracy = 97.9};
  summary.start_up = {.ranks = 2,
                      .data = "demo, version 1",
                      .parameters = 61706,
                      .before_s = 0.7,
                      .data_s = 0.11,
                      .model_s = 0.02,
                      .communicator_s = 0.3,
                      .joining_s = 0.1,
                      .gradients_s = 0.05,
                      .total_s = 1.02};
  summary.total_s = 41.2;
  summary.train_s = 36.9;
  summary.evaluate_s = 2.7;
  summary.images_per_s = 2604.6;
  summary.exposed_comm_fraction = 0.038;
  summary.bytes_sent = 1496.0 * 1024 * 1024;
  summary.bytes_counted = true;
  return summary;
}

const SummaryContext kContext{.recipe = "demo", .model = "lenet", .run_folder = "runs/demo-1"};

TEST(TrainingSummary, TextHasEveryResult) {
  const std::string text = summary_text(made_up(), kContext);
  for (const char* const part :
       {"demo trained: lenet, 61,706 parameters, 2 ranks", "97.85% of 2,000 images after 8 epochs",
        "best 97.90% after 7", "41 s in total: start-up 1.0 s, steps 37 s, evaluation 2.7 s",
        "2,605 images/s, 1,302 per rank",
        "1.02 s to the first step: process 0.70, data 0.11, model 0.02",
        "0.30 s until all ranks were connected, 0.20 s of it in parallel with data and model",
        "steps compute 96.2% of the time and wait for the network 3.8%", "1.5 GiB",
        "1 MiB per step", "runs/demo-1"})
    EXPECT_TRUE(base::has(text, part)) << part << text;
  EXPECT_FALSE(base::has(text, "target"));
  EXPECT_FALSE(base::has(text, "continue"));
  EXPECT_FALSE(base::has(text, "\033"));
}

TEST(TrainingSummary, SaysWhetherTheTargetWasReached) {
  train::TrainingSummary summary = made_up();
  summary.target = 97;
  EXPECT_TRUE(base::has(summary_text(summary, kContext), "97.00% NOT reached"));
  EXPECT_EQ(summary_json(summary, kContext)["seconds_to_target"], nullptr);
  summary.target_met = true;
  summary.seconds_to_target = 31;
  EXPECT_TRUE(base::has(summary_text(summary, kContext), "97.00% reached 31 s after the start"));
  EXPECT_EQ(summary_json(summary, kContext)["target_met"], true);
}

TEST(TrainingSummary, StoppedRunSaysHowToContinue) {
  train::TrainingSummary summary = made_up();
  summary.end = train::TrainingEnd::Signal;
  EXPECT_TRUE(
      base::has(summary_text(summary, kContext), "sluice train --resume --run runs/demo-1\n"));
}

TEST(TrainingSummary, JsonHasTheDocumentedKeys) {
  const auto json = summary_json(made_up(), kContext);
  EXPECT_DOUBLE_EQ(json["images_per_s"], 2604.6);
  EXPECT_DOUBLE_EQ(json["accuracy"], 97.85);
  EXPECT_DOUBLE_EQ(json["loss"], 0.0712);
  EXPECT_DOUBLE_EQ(json["epochs"], 8);
  EXPECT_EQ(json["steps"], 1496);
  EXPECT_DOUBLE_EQ(json["startup_s"], 1.02);
  EXPECT_DOUBLE_EQ(json["total_s"], 41.2);
  EXPECT_DOUBLE_EQ(json["exposed_comm_fraction"], 0.038);
  EXPECT_EQ(json["run"], "runs/demo-1");
  EXPECT_FALSE(json.contains("target"));
}

TEST(TrainingSummary, RunWithoutEvaluationSaysSo) {
  train::TrainingSummary summary = made_up();
  summary.last.reset();
  summary.best.reset();
  summary.ranks = 1;
  EXPECT_TRUE(
      base::has(summary_text(summary, {.recipe = "demo", .model = "lenet"}), "not evaluated"));
  EXPECT_TRUE(
      base::has(summary_text(summary, {.recipe = "demo", .model = "lenet"}), "nothing was saved"));
  EXPECT_EQ(summary_json(summary, kContext)["accuracy"], nullptr);
}

}  // namespace
}  // namespace sluice::cli
