// Captures a run after some step and restores another run from that state. Both must have the same
// bits as a run without capture.
#include "gradient/reducer_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "gradient/reducer.h"
#include "tests/engine/ranks.h"
#include "tests/gradient/model.h"
#include "tests/gradient/sparse_model.h"

namespace sluice::gradient {
namespace {

constexpr int kSteps = 9;

// The results of a step, as far as a caller can see them.
struct StepResults {
  bool empty = false;
  bool skipped = false;
  std::string warning;
  double loss_scale = 1;
  std::vector<Bytes> means;
  std::vector<bool> used;
  std::vector<std::vector<GradientPart>> received;
  std::vector<bool> decayed;
  bool operator==(const StepResults&) const = default;
};

class Steps {
 public:
  Steps(Communicator& comm, const ToyModel& model, const GradientOptions& options)
      : model_{model}, rank_{comm.rank()}, reducer_{comm, model.gradients(), options} {
    // Decay is set before the first step, as by an optimizer.
    set_decay(0);
  }

  Reducer& reducer() { return reducer_; }

  StepResults step(int number) {
    set_decay(number);
    model_.write_all(reducer_, rank_, number);
    return results_of(reducer_.finish());
  }
  StepResults flush() { return results_of(reducer_.flush()); }

 private:
  void set_decay(int step) {
    weights_ = weights_at(model_, step);
    for (std::size_t i = 0; i < model_.size(); ++i) {
      if (!weights_[i].empty()) reducer_.set_decay(i, weights_[i].data(), 0.01F);
    }
  }

  StepResults results_of(const FinishedStep& finished) {
    StepResults results{.empty = finished.empty,
                        .skipped = finished.skipped,
                        .warning = finished.warning,
                        .loss_scale = reducer_.loss_scale()};
    if (finished.empty || finished.skipped) return results;
    for (std::size_t i = 0; i < model_.size(); ++i) {
      results.means.push_back(result_of(reducer_, model_, i));
      results.used.push_back(reducer_.used(i));
      results.received.emplace_back(reducer_.received(i).begin(), reducer_.received(i).end());
      results.decayed.push_back(reducer_.includes_decay(i));
    }
    return results;
  }

  const ToyModel& model_;
  int rank_;
  std::vector<std::vector<float>> weights_;
  Reducer reducer_;
};

std::vector<StepResults> uninterrupted(Communicator& comm, const ToyModel& model,
                                       const GradientOptions& options) {
  Steps run{comm, model, options};
  std::vector<StepResults> steps;
  for (int step = 0; step < kSteps; ++step) steps.push_back(run.step(step));
  steps.push_back(run.flush());
  return steps;
}

std::map<std::string, GradientOptions> settings() {
  std::map<std::string, GradientOptions> settings;
  const SparseOptions sparse{.sparsity = 0.85, .chunk = 100, .dense_steps = 1, .ramp_steps = 2};
  settings["f32"] = {};
  settings["f16"] = {.wire = WireType::F16, .force_wire = true};
  settings["sparse"] = {.sparse = sparse};
  settings["sparse f16"] = {.wire = WireType::F16, .force_wire = true, .sparse = sparse};
  settings["scaled"] = {.loss_scale = {.enabled = true, .initial = 1024, .growth_steps = 2}};
  for (auto& [name, options] : settings) {
    options.theta = 5000;
    options.algorithm = "direct";
  }
  settings["sparse scaled"] = settings["sparse"];
  settings["sparse scaled"].loss_scale = settings["scaled"].loss_scale;
  for (const auto& [name, options] : std::map{settings}) {
    settings[name + ", two buffers"] = options;
    settings[name + ", two buffers"].double_buffering = true;
  }
  return settings;
}

// Some gradients exist at some ranks and in some steps only, and some overflow.
ToyModel uneven_model() {
  ToyModel model = sparse_model();
  model.has = [](std::size_t i, int rank, int step) {
    return (i != 1 && i != 4) || (step % 3 == 1 && rank == 0);
  };
  for (const int step : {3, 6}) {
    model.replacements.push_back({.rank = 0,
                                  .step = step,
                                  .gradient = 0,
                                  .element = 5,
                                  .value = std::numeric_limits<double>::infinity()});
  }
  return model;
}

void expect_same(const std::vector<StepResults>& expected, const StepResults& actual, int step) {
  const StepResults& other = expected[static_cast<std::size_t>(step)];
  ASSERT_EQ(other.skipped, actual.skipped) << "step " << step;
  ASSERT_EQ(other.loss_scale, actual.loss_scale) << "step " << step;
  ASSERT_TRUE(other == actual) << "step " << step;
}

TEST(ReducerState, ACapturedRunContinuesWithTheSameBits) {
  const ToyModel model = uneven_model();
  for (const auto& [name, options] : settings()) {
    for (const int ranks : {1, 3}) {
      SCOPED_TRACE(testing::Message() << name << ", " << ranks << " ranks");
      engine::run_ranks(ranks, [&, &options = options](Communicator& comm) {
        const std::vector<StepResults> expected = uninterrupted(comm, model, options);
        Steps run{comm, model, options};
        ReducerState state;
        run.reducer().capture(state);
        for (int step = 0; step < kSteps; ++step) {
          expect_same(expected, run.step(step), step);
          run.reducer().capture(state);
          EXPECT_EQ(state.in_flight, options.double_buffering);
        }
        expect_same(expected, run.flush(), kSteps);
      });
      if (HasFailure()) return;
    }
  }
}

TEST(ReducerState, ARestoredRunContinuesWithTheSameBits) {
  const ToyModel model = uneven_model();
  for (const auto& [name, options] : settings()) {
    for (const int ranks : {1, 3}) {
      SCOPED_TRACE(testing::Message() << name << ", " << ranks << " ranks");
      engine::run_ranks(ranks, [&, &options = options](Communicator& comm) {
        const std::vector<StepResults> expected = uninterrupted(comm, model, options);
        Steps first{comm, model, options};
        for (int k = 0; k < kSteps; ++k) {
          const ReducerState state = first.reducer().state();
          Steps second{comm, model, options};
          second.reducer().restore(state);
          EXPECT_EQ(second.reducer().state().layout_hash, state.layout_hash);
          for (int step = k; step < kSteps; ++step) expect_same(expected, second.step(step), step);
          expect_same(expected, second.flush(), kSteps);
          if (testing::Test::HasFatalFailure()) return;
          first.step(k);
        }
      });
      if (HasFailure()) return;
    }
  }
}

TEST(ReducerState, AFlushedRunCanBeRestored) {
  const ToyModel model = uneven_model();
  GradientOptions options = settings().at("sparse, two buffers");
  engine::run_ranks(3, [&](Communicator& comm) {
    Steps first{comm, model, options};
    for (int step = 0; step < 5; ++step) first.step(step);
    first.flush();
    const ReducerState state = first.reducer().state();
    EXPECT_FALSE(state.in_flight);
    Steps second{comm, model, options};
    second.reducer().restore(state);
    for (int step = 5; step < kSteps; ++step)
      EXPECT_TRUE(first.step(step) == second.step(step)) << step;
  });
}

TEST(ReducerState, AnyNumberOfRanksHandsOutTheMeanInFlight) {
  const ToyModel model = uneven_model();
  const GradientOptions options = settings().at("sparse, two buffers");
  ReducerState state;
  StepResults last;
  engine::run_ranks(3, [&](Communicator& comm) {
    Steps run{comm, model, options};
    for (int step = 0; step < 6; ++step) run.step(step);
    const ReducerState captured = run.reducer().state();
    const StepResults results = run.flush();
    if (comm.rank() == 1) state = captured, last = results;
  });
  engine::run_ranks(2, [&](Communicator& comm) {
    Steps run{comm, model, options};
    run.reducer().restore(state);
    EXPECT_TRUE(run.flush() == last);
    EXPECT_EQ(std::memcmp(run.reducer().residual().data(), state.residual.data(),
                          state.residual.size() * sizeof(float)),
              0);
  });
}

TEST(ReducerState, RefusesAndNamesOtherGradientsOrOptions) {
  const ToyModel model = sparse_model();
  engine::run_ranks(2, [&](Communicator& comm) {
    ReducerState state = Reducer{comm, model.gradients(), {.theta = 5000}}.state();
    const auto refusal = [&](const std::vector<GradientSpec>& gradients,
                             const GradientOptions& options) -> std::string {
      Reducer reducer{comm, gradients, options};
      try {
        reducer.restore(state);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::InvalidInput);
        return error.what();
      }
      return "";
    };
    EXPECT_EQ(refusal(model.gradients(), {.theta = 5000}), "");
    EXPECT_EQ(refusal(model.gradients(), {.theta = 7}),
              "theta: it was saved with 5000 bytes, and is 7 bytes now");
    std::vector<GradientSpec> longer = model.gradients();
    longer[0].count += 1;
    EXPECT_NE(refusal(longer, {.theta = 5000}).find("gradient 0: it was saved with"),
              std::string::npos);
    state.order.pop_back();
    EXPECT_EQ(refusal(model.gradients(), {.theta = 5000}),
              "the saved state of the gradients contradicts itself");
  });
}

TEST(ReducerState, IsCapturedAndRestoredOnlyBetweenSteps) {
  const ToyModel model = sparse_model();
  engine::run_ranks(2, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), {}};
    const ReducerState state = reducer.state();
    model.write_all(reducer, comm.rank(), 0);
    EXPECT_THROW(reducer.state(), Error);
    EXPECT_THROW(reducer.restore(state), Error);
    reducer.finish();
    EXPECT_THROW(reducer.restore(state), Error);
    EXPECT_TRUE(reducer.state().observed);
  });
}

}  // namespace
}  // namespace sluice::gradient
