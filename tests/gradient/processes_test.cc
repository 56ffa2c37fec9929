// Ranks as processes, perhaps on several nodes: `sluice launch -n N -- gradient_processes_test`.
#include <gtest/gtest.h>

#include <algorithm>

#include "gradient/reducer.h"
#include "tests/engine/ranks.h"
#include "tests/gradient/model.h"
#include "tests/gradient/sparse_model.h"

namespace sluice::gradient {
namespace {

bool spans_nodes() {
  std::int64_t nodes[] = {engine::world().node(), -engine::world().node()};
  engine::world().all_reduce(nodes, {.op = ReduceOp::Min}).wait();
  return nodes[0] != -nodes[1];
}

// Between nodes the reducer narrows even without `force_wire`; the reference needs `force_wire`.
void expect_means(GradientOptions options) {
  const ToyModel model = mixed_model();
  options.algorithm = "direct";
  GradientOptions reference_options = options;
  reference_options.force_wire = options.force_wire || spans_nodes();
  Reducer reducer{engine::world(), model.gradients(), options};
  ReferenceMeans reference{model, engine::world().size(), reference_options};
  for (int step = 0; step < 5; ++step) {
    model.write_all(reducer, engine::world().rank(), step);
    ASSERT_FALSE(reducer.finish().skipped);
    reducer.flush();
    expect_results(reducer, model, reference.run_step(step).means);
    ASSERT_EQ(reducer.state().wire_scale, reference.wire_scale);
  }
}

TEST(GradientProcesses, AverageInF32) { expect_means({.theta = 3000}); }
TEST(GradientProcesses, NarrowBetweenNodesOnly) {
  expect_means({.theta = 3000, .wire = WireType::F16});
  expect_means({.theta = 1, .wire = WireType::BF16});
}
TEST(GradientProcesses, NarrowIfForced) {
  expect_means({.wire = WireType::F16, .force_wire = true});
}
TEST(GradientProcesses, DoubleBuffering) {
  expect_means({.theta = 3000, .wire = WireType::F16, .double_buffering = true});
}

void expect_sparse(bool double_buffering) {
  const ToyModel model = sparse_model();
  const GradientOptions options{.theta = 1000,
                                .double_buffering = double_buffering,
                                .sparse = {.sparsity = 0.85, .chunk = 48},
                                .algorithm = "direct"};
  Reducer reducer{engine::world(), model.gradients(), options};
  NaiveSparse naive{model, engine::world().size(), options, 0};
  for (int step = 0; step < 12; ++step) {
    model.write_all(reducer, engine::world().rank(), step);
    if (reducer.finish().empty) continue;
    const NaiveSparse::StepResult expected = naive.step(double_buffering ? step - 1 : step);
    for (std::size_t i = 0; i < model.size(); ++i) {
      const auto* means = reinterpret_cast<const float*>(reducer.result(i));
      for (std::size_t e = 0; e < expected.means[i].size(); ++e)
        ASSERT_EQ(means[e], expected.means[i][e]) << step << ", " << i << ", " << e;
    }
  }
}
TEST(GradientProcesses, SendSparseSteps) {
  expect_sparse(false);
  expect_sparse(true);
}

}  // namespace
}  // namespace sluice::gradient
