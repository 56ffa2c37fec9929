// Ranks as processes: `sluice launch -n N -- trainer_processes_test`.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "tests/libtorch/torch_ranks.h"
#include "tests/train/tiny_training.h"
#include "train/loop/trainer.h"

namespace sluice::train {
namespace {

TrainingSummary train_here(const recipe::Recipe& recipe) {
  const std::atomic<int> no_stop{0};
  const Result<TrainingSummary> end =
      train_on([]() -> Result<data::Data> { return tiny_data(); },
               [] { return libtorch::torch_world(); }, {.recipe = recipe}, nullptr, no_stop);
  EXPECT_TRUE(end.ok()) << end.status().message();
  return end.ok() ? end.value() : TrainingSummary{};
}

void expect_same_at_all_ranks(std::uint64_t hash) {
  const auto number = static_cast<std::int64_t>(hash >> 1U);
  std::array<std::int64_t, 2> ends{number, -number};
  libtorch::torch_world().all_reduce(std::span{ends}.first(2), {.op = ReduceOp::Max}).wait();
  EXPECT_EQ(ends[0], -ends[1]);
}

TEST(TrainerProcesses, EndWithTheSameWeights) {
  const TrainingSummary summary = train_here(tiny_recipe());
  EXPECT_EQ(summary.steps, 2 * (96 / (8 * libtorch::torch_world().size())));
  ASSERT_TRUE(summary.last);
  EXPECT_EQ(summary.last->samples, 37);
  expect_same_at_all_ranks(summary.weights_hash);
}

TEST(TrainerProcesses, EndWithTheSameWeightsWithSparseDoubleBufferedGradients) {
  recipe::Recipe recipe = tiny_recipe();
  recipe.sparsity = 0.6;
  recipe.sparse_chunk = 128;
  recipe.double_buffering = true;
  recipe.global_batch = 48;
  recipe.batch = 4;
  expect_same_at_all_ranks(train_here(recipe).weights_hash);
}

}  // namespace
}  // namespace sluice::train
