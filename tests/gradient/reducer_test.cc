#include "gradient/reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "sluice/algorithms.h"
#include "sluice/log.h"
#include "tests/engine/ranks.h"
#include "tests/gradient/model.h"

namespace sluice::gradient {
namespace {

constexpr std::size_t kEverything = std::size_t{1} << 40U;

// Runs steps in which each rank marks its gradients in another order.
void expect_means(const ToyModel& model, int ranks, const GradientOptions& options, int steps = 3) {
  ReferenceMeans reference{model, ranks, options};
  std::vector<ReferenceMeans::StepResult> averages;
  for (int step = 0; step < steps; ++step) averages.push_back(reference.run_step(step));
  engine::run_ranks(ranks, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    for (int step = 0; step < steps; ++step) {
      model.write_all(reducer, comm.rank(), step);
      const FinishedStep finished = reducer.finish();
      ASSERT_FALSE(finished.empty || finished.skipped) << finished.warning;
      ASSERT_EQ(finished.warning, "");
      expect_results(reducer, model, averages[static_cast<std::size_t>(step)].means);
      for (std::size_t i = 0; i < model.size(); ++i) ASSERT_TRUE(reducer.used(i));
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(Reducer, AveragesEveryTypeWhateverThetaAndOrder) {
  const ToyModel model = mixed_model();
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const std::size_t theta : {std::size_t{1}, std::size_t{5000}, kEverything}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, theta " << theta);
      expect_means(model, ranks, {.theta = theta, .algorithm = "direct"});
      if (HasFailure()) return;
    }
  }
}

TEST(Reducer, SendsTheGroupsOfItsOptions) {
  expect_means(mixed_model(), 3, {.groups = {2, 5, 3}, .algorithm = "direct"});
}

TEST(Reducer, WorksWithoutGradientsAndWithOnlyEmptyOnes) {
  expect_means(ToyModel{{}}, 2, {});
  expect_means(ToyModel{{{"nothing", 0}, {"void", 0, DataType::F64}}}, 3, {});
}

TEST(Reducer, IsIndependentOfOtherCallsAndOtherReducers) {
  const ToyModel model = mixed_model();
  const GradientOptions options{.theta = 1000, .algorithm = "direct"};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer first{comm, model.gradients(), options};
    Reducer second{comm, model.gradients(), options};
    ReferenceMeans reference{model, 3, options};
    for (int step = 0; step < 3; ++step) {
      std::vector<std::int64_t> own(1000, comm.rank());
      Work work = comm.all_reduce(own);
      model.write_all(first, comm.rank(), 2 * step);
      model.write_all(second, comm.rank(), 2 * step + 1);
      if (comm.rank() == 1) work.wait();
      second.finish();
      first.finish();
      work.wait();
      ASSERT_EQ(own[999], 3);
      expect_results(first, model, reference.run_step(2 * step).means);
      expect_results(second, model, reference.run_step(2 * step + 1).means);
    }
  });
}

void expect_same_bits(int ranks, const GradientOptions& options) {
  const ToyModel model = mixed_model();
  std::vector<std::vector<Bytes>> results(static_cast<std::size_t>(ranks));
  engine::run_ranks(ranks, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    for (int step = 0; step < 3; ++step) {
      model.write_all(reducer, comm.rank(), step);
      ASSERT_FALSE(reducer.finish().skipped);
      for (std::size_t i = 0; i < model.size(); ++i)
        results[static_cast<std::size_t>(comm.rank())].push_back(result_of(reducer, model, i));
    }
  });
  for (const auto& each : results) EXPECT_TRUE(each == results[0]);
}

TEST(Reducer, GivesAllRanksTheSameBitsByEveryAlgorithm) {
  for (const Algorithm& algorithm : built_in_algorithms()) {
    if (!algorithm.supports(Collective::AllReduce)) continue;
    for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
      for (const int ranks : {3, 4, 7}) {
        SCOPED_TRACE(testing::Message() << algorithm.name << ", wire " << static_cast<int>(wire)
                                        << ", " << ranks << " ranks");
        expect_same_bits(ranks, {.theta = 3000,
                                 .wire = wire,
                                 .force_wire = true,
                                 .double_buffering = ranks == 4,
                                 .algorithm = std::string{algorithm.name}});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Reducer, AGradientThatARankDoesNotHaveCountsAsZeroThere) {
  ToyModel model = mixed_model();
  model.has = [](std::size_t i, int rank, int step) {
    if (i == 4) return false;      // no rank has it
    if (i == 7) return rank == 2;  // one rank has it
    return (i + static_cast<std::size_t>(step)) % 3 != 0 || rank != 1;
  };
  const GradientOptions options{.theta = 2000, .algorithm = "direct"};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    ReferenceMeans reference{model, 3, options};
    for (int step = 0; step < 4; ++step) {
      for (std::size_t i = 0; i < model.size(); ++i) {  // values in slots that are not marked
        if (!model.has(i, comm.rank(), step))
          std::memset(reducer.slot(i), 0x42, result_of(reducer, model, i).size());
      }
      model.write_all(reducer, comm.rank(), step);
      reducer.finish();
      expect_results(reducer, model, reference.run_step(step).means);
      for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(reducer.used(i), i != 4) << i;
    }
  });
}

TEST(Reducer, LogsOnceThatSomeRankHasNoGradient) {
  ToyModel model = plain_model();
  model.has = [](std::size_t i, int rank, int) { return i != 1 && (i != 4 || rank == 2); };
  std::mutex mutex;
  std::vector<std::string> heard;
  set_log([&](LogLevel level, const std::string& sentence) {
    EXPECT_EQ(level, LogLevel::Warning);
    const std::lock_guard lock{mutex};
    heard.push_back(sentence);
  });
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), {}};
    for (int step = 0; step < 3; ++step) {
      model.write_all(reducer, comm.rank(), step);
      reducer.finish();
    }
  });
  set_log(nullptr);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_NE(heard[0].find("no rank had a gradient for \"conv1.bias\""), std::string::npos);
  EXPECT_NE(heard[1].find("1 of 3 ranks had a gradient for \"fc.weight\""), std::string::npos);
}

TEST(Reducer, ReordersSlotsOnceLikeRankZero) {
  const ToyModel model = mixed_model();
  const GradientOptions options{.theta = 1000, .algorithm = "direct"};
  const std::vector<std::size_t> seen = {3, 1, 9, 0, 7, 5};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    ReferenceMeans reference{model, 3, options};
    const std::vector<std::size_t> reverse = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    for (const std::size_t i : reverse)
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reducer.slot(i)) % 64, 0U);
    EXPECT_EQ(reducer.state().order, reverse);
    const std::uint64_t version = reducer.layout_version();
    const std::uint64_t hash = reducer.state().layout_hash;
    if (comm.rank() == 0) {
      for (const std::size_t i : seen) model.write(reducer, i, 0, 0);
    } else {
      for (const std::size_t i : {0, 1, 3, 5, 7, 9}) model.write(reducer, i, comm.rank(), 0);
    }
    reducer.finish();
    ToyModel partly = model;
    partly.has = [&](std::size_t i, int, int) {
      return std::find(seen.begin(), seen.end(), i) != seen.end();
    };
    expect_results(reducer, partly, ReferenceMeans{partly, 3, options}.run_step(0).means);
    const std::vector<std::size_t> laid = {3, 1, 9, 0, 7, 5, 8, 6, 4, 2};
    EXPECT_EQ(reducer.state().order, laid);
    EXPECT_NE(reducer.layout_version(), version);
    EXPECT_NE(reducer.state().layout_hash, hash);
    for (std::size_t k = 0; k + 1 < laid.size(); ++k)
      EXPECT_LE(reducer.slot(laid[k]), reducer.slot(laid[k + 1]));

    const std::uint64_t relaid = reducer.layout_version();
    for (int step = 1; step < 4; ++step) {
      model.write_all(reducer, comm.rank(), step);
      reducer.finish();
      expect_results(reducer, model, reference.run_step(step).means);
      EXPECT_EQ(reducer.layout_version(), relaid);
    }
  });
}

TEST(Reducer, RefusesAGradientMarkedTwiceAndIntegers) {
  engine::run_ranks(2, [](Communicator& comm) {
    Reducer reducer{comm, {{"twice", 4}, {"once", 4}}, {}};
    reducer.mark_ready(0);
    try {
      reducer.mark_ready(0);
      ADD_FAILURE() << "marking twice was accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string{error.what()}.find("\"twice\""), std::string::npos) << error.what();
    }
    reducer.mark_ready(1);
    reducer.finish();
    reducer.mark_ready(0);
    reducer.finish();
    EXPECT_THROW((Reducer{comm, {{"i", 4, DataType::I32}}, {}}), Error);
    EXPECT_THROW((Reducer{comm, {{"g", 4}}, {.groups = {2}}}), Error);
    EXPECT_THROW((Reducer{comm, {{"g", 4}}, {.loss_scale = {.enabled = true, .initial = 0}}}),
                 Error);
    EXPECT_TRUE(reducer.flush().empty);
  });
}

TEST(Reducer, DestroyedInTheMiddleOfAStepGivesItsPeersAnError) {
  const ToyModel model = mixed_model();
  for (const bool double_buffering : {false, true}) {
    engine::run_ranks(3, [&](Communicator& comm) {
      Reducer reducer{comm, model.gradients(), {.theta = 1, .double_buffering = double_buffering}};
      model.write_all(reducer, comm.rank(), 0);
      reducer.finish();
      for (std::size_t i = 0; i < 6; ++i) model.write(reducer, 9 - i, comm.rank(), 1);
      if (comm.rank() == 1) return;
      std::string cause;
      try {
        reducer.finish();
        reducer.finish();
        ADD_FAILURE() << "the step finished without rank 1";
      } catch (const Error& error) {
        cause = error.what();
        EXPECT_NE(cause.find("rank 1"), std::string::npos) << cause;
      }
      try {
        model.write_all(reducer, comm.rank(), 2);
        reducer.finish();
        ADD_FAILURE() << "the step after the failure succeeded";
      } catch (const Error& error) {
        EXPECT_EQ(error.what(), cause) << "the first cause stays";
      }
    });
  }
}

}  // namespace
}  // namespace sluice::gradient
