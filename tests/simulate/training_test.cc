// The timeline of a step, and a training of many steps, against figures computed by hand.
#include "simulate/training.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/simulate/fabrics.h"

namespace sluice::simulate {
namespace {

recipe::Recipe recipe_with(std::vector<std::string> settings) {
  return recipe::load_recipe("pfn-15min", settings).value();
}

// A cluster without stragglers, with one speed: 100 images/s for any batch.
cluster::Cluster timed_fabric() {
  cluster::Cluster cluster = flat_fabric();
  cluster.steady = true;
  cluster.speeds = {
      {.framework = "f", .precision = "f32", .model = "resnet50", .curve = {{32, 100}}}};
  return cluster;
}

TEST(Straggler, TheSlowestOfManyRanksIsTwoToThreeSpreadsLate) {
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(32), 2.07, 0.02);  // tables of order statistics
  EXPECT_NEAR(expected_largest(512), 3.04, 0.02);
  EXPECT_NEAR(expected_largest(2048), 3.43, 0.02);
  EXPECT_NEAR(straggler_seconds({1e-3, 0.01}, 0.1, 32), 2.07 * 2e-3, 1e-4);
}

TEST(Backward, MostBytesOfResNet50AreReadyEarly) {
  const recipe::ModelTable model = recipe::model_table("resnet50").value();
  const auto buckets = ready_buckets(model, recipe_with({"theta=1"}), 0).value();
  EXPECT_EQ(buckets.size(), 161U) << "theta 1 makes a bucket of each gradient";
  double bytes = 0;
  double early = 0;
  for (const ReadyBucket& bucket : buckets) {
    bytes += bucket.bytes(0);
    // The first sixth of backward.
    if (bucket.ready < 1.0 / 3 + 2.0 / 3 / 6) early += bucket.bytes(0);
  }
  EXPECT_DOUBLE_EQ(bytes, 2 * 25557032.0) << "f16 on the wire";
  EXPECT_GT(early, 0.5 * bytes);
  EXPECT_DOUBLE_EQ(buckets.back().ready, 1);
}

TEST(Backward, SparsityReducesAllButOneDimensionalGradients) {
  const recipe::ModelTable model = recipe::model_table("alexnet").value();
  const auto buckets = ready_buckets(model, recipe_with({"theta=1G"}), 0.85).value();
  ASSERT_EQ(buckets.size(), 1U);
  double weights = 0;
  double biases = 0;
  for (const recipe::ModelLayer& layer : model.layers) {
    weights += static_cast<double>(layer.weights);
    biases += static_cast<double>(layer.biases);
  }
  EXPECT_NEAR(buckets[0].bytes(0.85), 2 * (0.15 * weights + biases), 1);
}

TEST(Training, WithoutOverlapComputeAndCommunicationAddUp) {
  const TrainingTime time = simulate_training({.scenario = {.cluster = timed_fabric()},
                                               .recipe = recipe_with({"theta=1G"}),
                                               .ranks = 4})
                                .value();
  // 32 images at 100 per second; a ring of 4 over 1 GB/s with 10 us per step, f16.
  const double bytes = 2 * 25557032.0;
  const double ring = 6 * (10e-6 + bytes / 4 / 1e9);
  EXPECT_NEAR(time.iteration.seconds, 0.32 + ring, 1e-6);
  EXPECT_NEAR(time.exposed_comm_fraction, ring / (0.32 + ring), 1e-6);
  EXPECT_NEAR(time.efficiency, 0.32 / (0.32 + ring), 1e-6);
  EXPECT_NEAR(time.speedup, 4 * time.efficiency, 1e-9);
  EXPECT_NEAR(time.images_per_s, 128 / time.iteration.seconds, 1e-6);
  const double steps = 90 * std::floor(1281167 / 128.0);
  EXPECT_NEAR(time.time_to_train_s, steps * time.iteration.seconds, 0.001 * time.time_to_train_s);
}

TEST(Training, DoubleBufferingTakesTheLongerOfComputeAndCommunication) {
  cluster::Cluster cluster = timed_fabric();
  const auto iteration = [&](const cluster::Cluster& on) {
    return simulate_training({.scenario = {.cluster = on},
                              .recipe = recipe_with({"double_buffering=true"}),
                              .ranks = 4})
        .value()
        .iteration;
  };
  EXPECT_NEAR(iteration(cluster).seconds, 0.32, 1e-9) << "hidden";
  EXPECT_EQ(iteration(cluster).exposed_s, 0);
  cluster.constants.between.bandwidth_bytes_per_s = 0.1e9;
  const double ring = 6 * (10e-6 + 2 * 25557032.0 / 4 / 0.1e9);
  EXPECT_NEAR(iteration(cluster).seconds, ring, 1e-6) << "bound by the network";
}

TEST(Training, BucketsHideBehindBackward) {
  const auto exposed = [&](const char* theta) {
    return simulate_training({.scenario = {.cluster = timed_fabric()},
                              .recipe = recipe_with({theta}),
                              .ranks = 4})
        .value()
        .iteration.exposed_s;
  };
  EXPECT_LT(exposed("theta=4M"), 0.2 * exposed("theta=1G"));
}

TEST(Training, SumsTheBatchPhases) {
  // 64 images per rank until epoch 30, then 128: twice the compute per step, half the steps.
  cluster::Cluster cluster = timed_fabric();
  const TrainingTime time =
      simulate_training({.scenario = {.cluster = cluster},
                         .recipe = recipe::load_recipe("chainermn-cloud").value(),
                         .ranks = 4})
          .value();
  EXPECT_NEAR(time.steps_s, 90 * 1281167.0 / 400, 0.001 * time.steps_s);
}

TEST(Training, JitterCostsTimeAndRepeatsForTheSameSeed) {
  ClusterScenario scenario{.cluster = timed_fabric()};
  const auto seconds = [&] {
    return simulate_training({.scenario = scenario, .recipe = recipe_with({}), .ranks = 4})
        .value()
        .iteration.seconds;
  };
  const double quiet = seconds();
  scenario.jitter_s = 0.01;
  const double jittery = seconds();
  EXPECT_EQ(seconds(), jittery);
  EXPECT_GT(jittery, quiet);
  EXPECT_LE(jittery, quiet + 0.01 + 1e-9);
  scenario.seed = 2;
  EXPECT_NE(seconds(), jittery);
}

TEST(Training, TheOptimizerRunsAfterCommunication) {
  cluster::Cluster cluster = timed_fabric();
  const auto iteration = [&] {
    return simulate_training(
               {.scenario = {.cluster = cluster}, .recipe = recipe_with({"theta=1G"}), .ranks = 4})
        .value()
        .iteration;
  };
  const double before = iteration().seconds;
  cluster.speeds[0].optimizer_s = 0.02;
  const IterationTime after = iteration();
  EXPECT_NEAR(after.seconds, before, 1e-9) << "without overlap only the order changes";
  ASSERT_EQ(after.buckets.size(), 1U);
  EXPECT_NEAR(after.buckets[0].ready_s, 0.30, 1e-9) << "gradients are ready 20 ms earlier";
}

TEST(Training, WaitsForSlowInput) {
  cluster::Cluster cluster = timed_fabric();
  cluster.speeds[0].input_images_per_s = 50;
  const TrainingTime time =
      simulate_training({.scenario = {.cluster = cluster}, .recipe = recipe_with({}), .ranks = 4})
          .value();
  EXPECT_NEAR(time.iteration.seconds, 32.0 / 50, 1e-9);
  EXPECT_GT(time.iteration.stall_s, 0.2);
  EXPECT_NEAR(time.efficiency, 0.5, 1e-9);
}

TEST(Training, StrongScalingSharesTheGlobalBatch) {
  // A step takes 5 ms plus 10 ms per image, so half of a batch takes more than half of its time.
  cluster::Cluster cluster = timed_fabric();
  cluster.speeds[0].curve = {{1, 1 / 0.015}, {101, 101 / 1.015}};
  const auto on = [&](int ranks) {
    return simulate_training({.scenario = {.cluster = cluster},
                              .recipe = recipe_with({"global_batch=64", "batch=64", "theta=1G"}),
                              .ranks = ranks})
        .value();
  };
  EXPECT_EQ(on(1).global_batch, 64);
  EXPECT_NEAR(on(1).efficiency, 1, 1e-9);
  const TrainingTime four = on(4);
  const double ring = 6 * (10e-6 + 2 * 25557032.0 / 4 / 1e9);
  EXPECT_EQ(four.global_batch, 64);
  EXPECT_NEAR(four.iteration.seconds, 0.165 + ring, 1e-6);
  EXPECT_NEAR(four.speedup, 0.645 / (0.165 + ring), 1e-6);
  EXPECT_NEAR(four.efficiency, four.speedup / 4, 1e-9);
}

TEST(Training, CountsTheTrainersEvaluations) {
  for (const char* name : {"pfn-15min", "fujitsu-mlperf-70s", "chainermn-cloud"}) {
    recipe::Recipe recipe = recipe::load_recipe(name).value();
    recipe.compute = recipe::Compute::F32;
    cluster::Cluster cluster = timed_fabric();
    cluster.speeds[0].evaluation_s = 1;
    constexpr std::int64_t kSamples = 20000;
    const recipe::EpochTable table = recipe::make_epoch_table(recipe, 4, kSamples).value();
    double evaluations = 0;
    for (std::int64_t step = 0; step < table.steps; ++step)
      evaluations += recipe::evaluates_after(recipe, table, step) ? 1 : 0;
    EXPECT_EQ(
        simulate_training(
            {.scenario = {.cluster = cluster}, .recipe = recipe, .ranks = 4, .samples = kSamples})
            .value()
            .overhead_s,
        evaluations)
        << name;
  }
}

TEST(Training, AGivenSpreadReplacesTheClustersOwn) {
  ClusterScenario scenario{.cluster = timed_fabric()};
  ASSERT_TRUE(apply(scenario, {"straggler_ms=2", "straggler_part=0"}, true).ok());
  const TrainingTime time =
      simulate_training({.scenario = scenario, .recipe = recipe_with({}), .ranks = 32}).value();
  EXPECT_NEAR(time.iteration.straggler_s, 2.07 * 2e-3, 1e-4);
}

// On one node only measured algorithms are candidates.
TEST(Training, AnAlgorithmThatIsNotACandidateIsAnError) {
  cluster::Cluster cluster = timed_fabric();
  cluster.ranks_per_node = 4;
  cluster.constants.measured = {{.algorithm = "ring", .inside = {1e-6, 1e9}}};
  const Result<TrainingTime> time =
      simulate_training({.scenario = {.cluster = cluster},
                         .recipe = recipe_with({"algorithm=hierarchical:double_tree"}),
                         .ranks = 4});
  EXPECT_EQ(
      time.status().message(),
      "algorithm hierarchical:double_tree is not available for an all_reduce on cluster flat: "
      "choose another");
}

TEST(Training, AMissingSpeedIsAnError) {
  const Result<TrainingTime> time = simulate_training(
      {.scenario = {.cluster = flat_fabric()}, .recipe = recipe_with({}), .ranks = 4});
  EXPECT_EQ(time.status().message(), "cluster flat has no speed for f32 resnet50: it has none");
}

}  // namespace
}  // namespace sluice::simulate
