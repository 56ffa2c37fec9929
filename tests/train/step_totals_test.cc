#include "train/report/step_totals.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "tests/engine/ranks.h"

namespace sluice::train {
namespace {

StepTotals step_of(int rank, int step, double seconds) {
  return {.steps = 1,
          .images = 8,
          .loss = 10.0 * step + rank,
          .seconds = seconds * (rank + 1),
          .stop_requested = rank == 1 && step == 40 ? 1.0 : 0.0};
}

struct Received {
  std::vector<int> at;  // the steps after which a sum arrived
  StepTotals sum;
};

std::vector<Received> run_steps(int ranks, int steps, double seconds) {
  std::mutex mutex;
  std::vector<Received> received(static_cast<std::size_t>(ranks));
  engine::run_ranks(ranks, [&](Communicator& communicator) {
    TotalsExchange exchange{communicator};
    Received own;
    for (int step = 0; step < steps; ++step) {
      if (const auto arrived = exchange.step(step_of(communicator.rank(), step, seconds))) {
        own.at.push_back(step);
        own.sum += *arrived;
      }
    }
    own.sum += exchange.finish();
    const std::lock_guard lock{mutex};
    received[static_cast<std::size_t>(communicator.rank())] = own;
  });
  return received;
}

TEST(TotalsExchange, SumsEveryStepOfEveryRankOnce) {
  for (const double seconds : {1e-4, 0.03, 2.0}) {
    const int ranks = 3;
    const int steps = 57;
    const auto received = run_steps(ranks, steps, seconds);
    double loss = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (int step = 0; step < steps; ++step) loss += 10.0 * step + rank;
    for (const Received& own : received) {
      EXPECT_EQ(own.sum.steps, ranks * steps);
      EXPECT_EQ(own.sum.images, 8 * ranks * steps);
      EXPECT_DOUBLE_EQ(own.sum.loss, loss);
      EXPECT_EQ(own.sum.stop_requested, 1);
    }
  }
}

// If the steps differed, one rank could end while the others wait for it.
TEST(TotalsExchange, ReturnsSumsAtTheSameStepsAtAllRanks) {
  for (const double seconds : {1e-4, 0.03, 2.0}) {
    const auto received = run_steps(3, 300, seconds);
    EXPECT_FALSE(received[0].at.empty());
    EXPECT_EQ(received[0].at, received[1].at);
    EXPECT_EQ(received[0].at, received[2].at);
  }
}

TEST(TotalsExchange, SendsRarelyWithQuickStepsAndAtOnceWithSlowOnes) {
  EXPECT_LT(run_steps(2, 300, 1e-3)[0].at.size(), 10U);
  const auto slow = run_steps(2, 10, 2.0);
  // After the first sum the ranks know that steps are slow; then a sum arrives at every step.
  EXPECT_EQ(slow[0].at, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace sluice::train
