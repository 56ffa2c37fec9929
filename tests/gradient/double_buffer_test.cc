#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>

#include "gradient/reducer.h"
#include "tests/engine/ranks.h"
#include "tests/gradient/model.h"

namespace sluice::gradient {
namespace {

// Results come one step late. Step t uses the wire scale that step t - 1 leads to, and the loss
// scale from before that update.
void expect_one_step_late(const ToyModel& model, int ranks, GradientOptions options, int steps) {
  options.double_buffering = true;
  options.algorithm = "direct";
  engine::run_ranks(ranks, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    ReferenceMeans reference{model, ranks, options};
    std::optional<ReferenceMeans::StepResult> before;
    const auto expect_before = [&](const FinishedStep& finished) {
      ASSERT_EQ(finished.empty, !before);
      if (!before) return;
      ASSERT_EQ(finished.skipped, before->skipped) << finished.warning;
      if (!before->skipped) expect_results(reducer, model, before->means);
    };
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step << ", rank " << comm.rank());
      const double loss_scale = reference.loss_scale;
      ASSERT_EQ(reducer.loss_scale(), loss_scale);
      model.write_all(reducer, comm.rank(), step);
      const FinishedStep finished = reducer.finish();
      if (before) reference.update_scales(*before);
      ASSERT_EQ(reducer.state().wire_scale, reference.wire_scale);
      expect_before(finished);
      if (testing::Test::HasFatalFailure()) return;
      before = reference.step_with_scales(step, reference.wire_scale, loss_scale);
      EXPECT_TRUE(reducer.state().in_flight);
    }
    expect_before(reducer.flush());
    EXPECT_FALSE(reducer.state().in_flight);
    EXPECT_TRUE(reducer.flush().empty);
  });
}

TEST(DoubleBuffer, HandsOutTheStepBeforeBitForBit) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const std::size_t theta : {std::size_t{1}, std::size_t{1} << 40U}) {
      expect_one_step_late(mixed_model(), ranks, {.theta = theta}, 5);
      if (HasFailure()) return;
    }
  }
}

TEST(DoubleBuffer, ScalesBelongToTheStepThatUsedThem) {
  ToyModel model = plain_model();
  model.scale = [](int, int step) { return step < 4 ? 1e-3 : 1.0; };
  for (const int step : {7, 8, 13}) {
    model.replacements.push_back({.rank = 1,
                                  .step = step,
                                  .gradient = 0,
                                  .element = 5,
                                  .value = std::numeric_limits<double>::infinity()});
  }
  for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
    GradientOptions options{.theta = 1000, .wire = wire, .force_wire = true};
    options.loss_scale = {.enabled = true, .initial = 4096, .growth_steps = 3};
    SCOPED_TRACE(static_cast<int>(wire));
    expect_one_step_late(model, 3, options, 20);
  }
}

TEST(DoubleBuffer, TheFirstFinishIsEmptyAndSlotsAreZero) {
  const ToyModel model = mixed_model();
  engine::run_ranks(2, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), {.double_buffering = true}};
    EXPECT_TRUE(reducer.flush().empty);
    model.write_all(reducer, comm.rank(), 0);
    std::byte* const before = reducer.slot(0);
    EXPECT_TRUE(reducer.finish().empty);
    EXPECT_NE(reducer.slot(0), before);
    for (std::size_t i = 0; i < model.size(); ++i) {
      const Bytes bytes = result_of(reducer, model, i);
      EXPECT_EQ(bytes, Bytes(bytes.size()));
    }
    EXPECT_FALSE(reducer.flush().empty);
  });
}

TEST(DoubleBuffer, ContinuesAfterAFlush) {
  const ToyModel model = mixed_model();
  const GradientOptions options{.double_buffering = true, .algorithm = "direct"};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    ReferenceMeans reference{model, 3, options};
    for (int step = 0; step < 6; ++step) {
      model.write_all(reducer, comm.rank(), step);
      ASSERT_TRUE(reducer.finish().empty) << "the step before was flushed";
      ASSERT_FALSE(reducer.flush().empty);
      expect_results(reducer, model, reference.run_step(step).means);
    }
  });
}

// A rank that does not need the last step still sends the data that the others wait for.
TEST(DoubleBuffer, ARankMayEndWithoutAFlushWhileAnotherFlushes) {
  const ToyModel model = mixed_model();
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), {.theta = 1, .double_buffering = true}};
    for (int step = 0; step < 2; ++step) {
      if (comm.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds{30});
      model.write_all(reducer, comm.rank(), step);
      (void)reducer.finish();
    }
    if (comm.rank() == 2) {
      EXPECT_FALSE(reducer.flush().empty);
    }
  });
}

TEST(DoubleBuffer, UsedBelongsToTheStepHandedOut) {
  ToyModel model = mixed_model();
  model.has = [](std::size_t i, int, int step) {
    return (static_cast<std::size_t>(step) + i) % 2 == 0;
  };
  engine::run_ranks(2, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), {.double_buffering = true}};
    for (int step = 0; step < 5; ++step) {
      model.write_all(reducer, comm.rank(), step);
      if (reducer.finish().empty) continue;
      for (std::size_t i = 0; i < model.size(); ++i)
        ASSERT_EQ(reducer.used(i), model.has(i, 0, step - 1)) << i;
    }
  });
}

}  // namespace
}  // namespace sluice::gradient
