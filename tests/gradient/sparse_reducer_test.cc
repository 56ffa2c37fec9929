#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gradient/reducer.h"
#include "tests/engine/ranks.h"
#include "tests/gradient/sparse_model.h"

namespace sluice::gradient {
namespace {

constexpr float kDecay = 0.01F;
constexpr std::size_t kEverything = std::size_t{1} << 40U;

const float* floats(Reducer& reducer, std::size_t i) {
  return reinterpret_cast<const float*>(reducer.result(i));
}

bool has_chunks(const ToyModel& model, std::size_t i) {
  const GradientSpec& spec = model.gradients()[i];
  return spec.may_be_sparse && spec.type == DataType::F32 && spec.count > 0;
}

void set_decays(Reducer& reducer, const std::vector<std::vector<float>>& weights, float decay) {
  for (std::size_t i = 0; i < weights.size(); ++i) reducer.set_decay(i, weights[i].data(), decay);
}

// Gradients with chunks have the bits of the naive model, other gradients those of a dense step.
void expect_step(Reducer& reducer, const ToyModel& model, const NaiveSparse::StepResult& expected,
                 const std::vector<Bytes>& dense) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    const GradientSpec& spec = model.gradients()[i];
    SCOPED_TRACE(spec.name);
    if (!has_chunks(model, i)) {
      ASSERT_TRUE(result_of(reducer, model, i) == dense[i]);
      ASSERT_FALSE(reducer.includes_decay(i));
      ASSERT_EQ(reducer.received(i).size(), 1U);
      ASSERT_EQ(reducer.received(i)[0], (GradientPart{0, spec.count, 1}));
      continue;
    }
    for (std::size_t e = 0; e < spec.count; ++e)
      ASSERT_EQ(floats(reducer, i)[e], expected.means[i][e]) << "element " << e;
    const std::vector<GradientPart> received{reducer.received(i).begin(),
                                             reducer.received(i).end()};
    ASSERT_EQ(received, expected.received[i]);
    ASSERT_EQ(reducer.includes_decay(i), expected.sparse);
  }
}

void expect_naive(const ToyModel& model, int ranks, GradientOptions options, int steps = 12) {
  options.algorithm = "direct";
  engine::run_ranks(ranks, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    NaiveSparse naive{model, ranks, options, kDecay};
    ReferenceMeans reference{model, ranks, {}};
    const auto check = [&](int step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      expect_step(reducer, model, naive.step(step), reference.step_with_scales(step, 1, 1).means);
    };
    std::vector<std::vector<float>> weights = weights_at(model, 0);
    set_decays(reducer, weights, kDecay);
    for (int step = 0; step < steps; ++step) {
      model.write_all(reducer, comm.rank(), step);
      const FinishedStep finished = reducer.finish();
      ASSERT_EQ(finished.empty, options.double_buffering && step == 0);
      ASSERT_FALSE(finished.skipped);
      // The weights change, as by an optimizer's step.
      const std::vector<std::vector<float>> next = weights_at(model, step + 1);
      for (std::size_t i = 0; i < model.size(); ++i)
        std::copy(next[i].begin(), next[i].end(), weights[i].begin());
      if (!finished.empty) check(options.double_buffering ? step - 1 : step);
      if (testing::Test::HasFatalFailure()) return;
    }
    if (!options.double_buffering) return;
    reducer.flush();
    check(steps - 1);
  });
}

TEST(SparseReducer, SendsTheSameAsTheNaiveModel) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const std::size_t theta : {std::size_t{1}, std::size_t{500}, kEverything}) {
      for (const bool double_buffering : {false, true}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, theta " << theta
                                        << ", double buffering " << double_buffering);
        expect_naive(sparse_model(), ranks,
                     {.theta = theta,
                      .double_buffering = double_buffering,
                      .sparse = {.sparsity = 0.85, .chunk = 48}});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(SparseReducer, SupportsGroupsAndRamps) {
  const SparseOptions sparse{.sparsity = 0.9, .chunk = 20, .dense_steps = 3, .ramp_steps = 4};
  expect_naive(sparse_model(), 3, {.groups = {2, 5, 3}, .sparse = sparse});
  expect_naive(sparse_model(), 3, {.double_buffering = true, .sparse = sparse});
}

TEST(SparseReducer, ChunksMayBeAsLargeAsTheGradientsOrOneElement) {
  expect_naive(sparse_model(), 2, {.sparse = {.sparsity = 0.5, .chunk = 1}}, 5);
  expect_naive(sparse_model(), 2, {.sparse = {.sparsity = 0.5, .chunk = 100'000}});
  // Most buckets have nothing to send.
  expect_naive(sparse_model(), 2, {.theta = 1, .sparse = {.sparsity = 0.999, .chunk = 48}});
}

TEST(SparseReducer, AMissingGradientAddsNothing) {
  ToyModel model = sparse_model();
  model.has = [](std::size_t i, int rank, int step) {
    if (i == 4) return step % 3 == 0;  // at all ranks or at none
    return (i + static_cast<std::size_t>(step)) % 4 != 0 || rank != 1;
  };
  expect_naive(model, 3, {.sparse = {.sparsity = 0.8, .chunk = 48}});
  expect_naive(model, 3, {.double_buffering = true, .sparse = {.sparsity = 0.8, .chunk = 48}});
}

TEST(SparseReducer, AResidualCountsAsUsedWhenItArrives) {
  ToyModel model{{{.name = "a", .count = 100}, {.name = "b", .count = 10, .may_be_sparse = false}}};
  model.has = [](std::size_t, int, int step) { return step < 2; };
  engine::run_ranks(2, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), {.sparse = {.sparsity = 0.5, .chunk = 50}}};
    std::vector<bool> used;
    for (int step = 0; step < 4; ++step) {
      model.write_all(reducer, comm.rank(), step);
      reducer.finish();
      used.push_back(reducer.used(0));
      EXPECT_EQ(reducer.used(1), step < 2);
    }
    // Step 1 sends the first half, step 2 the other half from the residual.
    EXPECT_EQ(used, (std::vector<bool>{true, true, true, true}));
  });
}

TEST(SparseReducer, SendingEverythingSparselyEqualsADenseStep) {
  const ToyModel model = sparse_model();
  for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
    GradientOptions options{.theta = 500, .wire = wire, .force_wire = true, .algorithm = "direct"};
    GradientOptions sparse_options = options;
    sparse_options.sparse = {.sparsity = 1e-9, .chunk = 48};
    engine::run_ranks(3, [&](Communicator& comm) {
      Reducer dense{comm, model.gradients(), options};
      Reducer sparse{comm, model.gradients(), sparse_options};
      for (int step = 0; step < 6; ++step) {
        model.write_all(dense, comm.rank(), step);
        dense.finish();
        model.write_all(sparse, comm.rank(), step);
        sparse.finish();
        ASSERT_EQ(dense.state().wire_scale, sparse.state().wire_scale);
        for (std::size_t i = 0; i < model.size(); ++i) {
          if (model.gradients()[i].type != DataType::F32) continue;
          for (std::size_t e = 0; e < model.gradients()[i].count; ++e)
            ASSERT_EQ(floats(dense, i)[e], floats(sparse, i)[e]);
        }
      }
    });
  }
}

// After each of a hundred steps, the received gradients plus the residuals equal the sum of all
// gradients. Step `skipped` does not count: its gradients are not finite at one rank.
void expect_nothing_lost(int ranks, const GradientOptions& options, double tolerance,
                         int skipped = -1) {
  ToyModel model = sparse_model();
  model.replacements.push_back({.rank = 0,
                                .step = skipped,
                                .gradient = 4,
                                .element = 100,
                                .value = std::numeric_limits<double>::infinity()});
  engine::run_ranks(ranks, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    const std::vector<std::vector<float>> weights = weights_at(model, 0);
    std::vector<double> added;
    std::vector<double> received(reducer.residual().size());
    int skips = 0;
    const auto receive = [&](const FinishedStep& finished) {
      skips += finished.skipped ? 1 : 0;
      if (finished.empty || finished.skipped) return;
      std::size_t position = 0;
      for (std::size_t i = 0; i < model.size(); ++i) {
        if (!has_chunks(model, i)) continue;
        for (std::size_t e = 0; e < model.gradients()[i].count; ++e, ++position) {
          received[position] += static_cast<double>(floats(reducer, i)[e]);
          if (!reducer.includes_decay(i))
            received[position] += static_cast<double>(kDecay * weights[i][e]);
        }
      }
    };
    added.resize(received.size());
    set_decays(reducer, weights, kDecay);
    for (int step = 0; step < 100; ++step) {
      model.write_all(reducer, comm.rank(), step);
      receive(reducer.finish());
      std::size_t position = 0;
      for (std::size_t i = 0; i < model.size(); ++i) {
        if (!has_chunks(model, i) || step == skipped) continue;
        const Bytes own = model.gradient(i, comm.rank(), step);
        for (std::size_t e = 0; e < model.gradients()[i].count; ++e, ++position) {
          float value = 0;
          std::memcpy(&value, own.data() + e * sizeof value, sizeof value);
          added[position] +=
              static_cast<double>(value) + static_cast<double>(kDecay * weights[i][e]);
        }
      }
      if (options.double_buffering) {
        if (step % 10 != 9) continue;
        receive(reducer.flush());
      }
      // Minus the residuals, averaged over the ranks: what should have been received.
      std::vector<double> expected = added;
      for (std::size_t p = 0; p < expected.size(); ++p)
        expected[p] -= static_cast<double>(reducer.residual()[p]);
      comm.all_reduce(expected, {.op = ReduceOp::Mean}).wait();
      for (std::size_t p = 0; p < expected.size(); ++p)
        ASSERT_NEAR(received[p], expected[p], tolerance) << "step " << step << ", element " << p;
    }
    EXPECT_EQ(skips, skipped < 0 ? 0 : 1);
    EXPECT_GT(std::abs(reducer.residual()[0]) + std::abs(reducer.residual()[400]), 0);
  });
}

// Values are below 1, and a residual sums up at most about twenty of them. f32 loses 2^-24 of the
// residual in each of a hundred steps; f16 loses 2^-11 and bf16 2^-8 each of the twenty times it is
// sent.
TEST(SparseReducer, LosesNothing) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const bool double_buffering : {false, true}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, double_buffering " << double_buffering);
      GradientOptions options{.theta = 1500,
                              .force_wire = true,
                              .double_buffering = double_buffering,
                              .sparse = {.sparsity = 0.85, .chunk = 48}};
      expect_nothing_lost(ranks, options, 1e-4);
      options.wire = WireType::F16;
      expect_nothing_lost(ranks, options, 0.05);
      options.wire = WireType::BF16;
      expect_nothing_lost(ranks, options, 0.4);
      options.loss_scale = {.enabled = true, .initial = 1024, .growth_steps = 30};
      expect_nothing_lost(ranks, options, 0.4);
      options.wire = WireType::F16;
      expect_nothing_lost(ranks, options, 0.05);
      options.wire = WireType::F32;
      expect_nothing_lost(ranks, options, 1e-4);
      if (HasFailure()) return;
    }
  }
}

TEST(SparseReducer, LosesOnlyTheStepThatIsSkipped) {
  for (const bool double_buffering : {false, true}) {
    GradientOptions options{.theta = 1500,
                            .wire = WireType::F16,
                            .force_wire = true,
                            .double_buffering = double_buffering,
                            .sparse = {.sparsity = 0.85, .chunk = 48}};
    expect_nothing_lost(3, options, 0.05, 55);
    options.loss_scale = {.enabled = true, .initial = 1024, .growth_steps = 30};
    expect_nothing_lost(3, options, 0.05, 55);
    options.wire = WireType::F32;
    expect_nothing_lost(3, options, 1e-4, 55);
  }
}

TEST(SparseReducer, GivesAllRanksTheSameBits) {
  const ToyModel model = sparse_model();
  for (const WireType wire : {WireType::F32, WireType::F16}) {
    std::vector<std::vector<Bytes>> results(4);
    engine::run_ranks(4, [&](Communicator& comm) {
      Reducer reducer{comm,
                      model.gradients(),
                      {.theta = 500,
                       .wire = wire,
                       .force_wire = true,
                       .sparse = {.sparsity = 0.85, .chunk = 48}}};
      for (int step = 0; step < 20; ++step) {
        model.write_all(reducer, comm.rank(), step);
        reducer.finish();
        for (std::size_t i = 0; i < model.size(); ++i)
          results[static_cast<std::size_t>(comm.rank())].push_back(result_of(reducer, model, i));
      }
    });
    for (const auto& each : results) EXPECT_TRUE(each == results[0]);
  }
}

// In step 5 rank 1 has a value that is not finite. Whether its chunk is sent or not, no rank uses
// the step.
void expect_skipped(GradientOptions options, double value, std::size_t element) {
  ToyModel model = sparse_model();
  model.replacements.push_back(
      {.rank = 1, .step = 5, .gradient = 8, .element = element, .value = value});
  options.theta = 800;
  options.force_wire = true;
  options.sparse = {.sparsity = 0.7, .chunk = 48};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    const std::vector<std::vector<float>> weights = weights_at(model, 0);
    set_decays(reducer, weights, kDecay);
    for (int step = 0; step < 10; ++step) {
      const std::vector<float> residual{reducer.residual().begin(), reducer.residual().end()};
      const SparsityState before = reducer.state().sparsity;
      model.write_all(reducer, comm.rank(), step);
      const FinishedStep finished = reducer.finish();
      ASSERT_EQ(finished.skipped, step == 5) << finished.warning;
      ASSERT_EQ(finished.warning.empty(), step != 5);
      for (const float r : reducer.residual()) ASSERT_TRUE(std::isfinite(r));
      if (step != 5) continue;
      EXPECT_NE(finished.warning.find("fc.weight"), std::string::npos) << finished.warning;
      EXPECT_NE(finished.warning.find("rank 1"), std::string::npos) << finished.warning;
      EXPECT_TRUE(std::equal(residual.begin(), residual.end(), reducer.residual().begin()));
      EXPECT_EQ(reducer.state().sparsity.norms, before.norms);
      EXPECT_EQ(reducer.state().sparsity.ages, before.ages);
    }
  });
}

TEST(SparseReducer, ASkippedStepChangesNothing) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (std::size_t element = 0; element < 1000; element += 48) {
    SCOPED_TRACE(element);
    expect_skipped({.wire = WireType::F16}, infinity, element);
    expect_skipped({.loss_scale = {.enabled = true, .initial = 64}},
                   std::numeric_limits<double>::quiet_NaN(), element);
    if (HasFailure()) return;
  }
}

TEST(SparseReducer, WarmUpHasTheBitsOfDenseSteps) {
  const ToyModel model = sparse_model();
  GradientOptions options{.theta = 500, .algorithm = "direct"};
  options.sparse = {.sparsity = 0.85, .chunk = 48, .dense_steps = 4};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    ReferenceMeans reference{model, 3, options};
    const std::vector<std::vector<float>> weights = weights_at(model, 0);
    set_decays(reducer, weights, kDecay);
    for (int step = 0; step < 4; ++step) {
      model.write_all(reducer, comm.rank(), step);
      reducer.finish();
      expect_results(reducer, model, reference.run_step(step).means);
      for (std::size_t i = 0; i < model.size(); ++i) EXPECT_FALSE(reducer.includes_decay(i));
    }
    model.write_all(reducer, comm.rank(), 4);
    reducer.finish();
    EXPECT_TRUE(reducer.includes_decay(0));
  });
}

TEST(SparseReducer, RefusesASparsityThatSendsNothing) {
  engine::run_ranks(2, [&](Communicator& comm) {
    for (const SparseOptions& sparse :
         {SparseOptions{.sparsity = 1}, SparseOptions{.sparsity = -0.1},
          SparseOptions{.sparsity = 0.5, .chunk = 0},
          SparseOptions{.sparsity = 0.5, .dense_steps = -1}}) {
      try {
        const Reducer reducer{comm, {{.name = "a", .count = 10}}, {.sparse = sparse}};
        ADD_FAILURE() << "the options were accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::InvalidArgument);
        EXPECT_NE(std::string{error.what()}.find("sparsity"), std::string::npos) << error.what();
      }
    }
  });
}

}  // namespace
}  // namespace sluice::gradient
