#include "train/report/totals_exchange.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "tests/engine/ranks.h"

namespace sluice::train {
namespace {

// What rank r has at step s.
StepTotals beat(int rank, int step, double seconds) {
  return {.steps = 1,
          .images = 8,
          .loss = 10.0 * step + rank,
          .seconds = seconds * (rank + 1),
          .told_to_stop = rank == 1 && step == 40 ? 1.0 : 0.0};
}

struct Taken {
  std::vector<int> at;  // steps
  StepTotals sum;
};

std::vector<Taken> beats_of(int ranks, int steps, double seconds) {
  std::mutex mutex;
  std::vector<Taken> taken(static_cast<std::size_t>(ranks));
  engine::run_ranks(ranks, [&](Communicator& communicator) {
    TotalsExchange pulse{communicator};
    Taken own;
    for (int step = 0; step < steps; ++step) {
      if (const auto arrived = pulse.step(beat(communicator.rank(), step, seconds))) {
        own.at.push_back(step);
        own.sum += *arrived;
      }
    }
    own.sum += pulse.finish();
    const std::lock_guard lock{mutex};
    taken[static_cast<std::size_t>(communicator.rank())] = own;
  });
  return taken;
}

TEST(TotalsExchange, SumsEveryStepOfEveryRankOnce) {
  for (const double seconds : {1e-4, 0.03, 2.0}) {
    const int ranks = 3;
    const int steps = 57;
    const auto taken = beats_of(ranks, steps, seconds);
    double loss = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (int step = 0; step < steps; ++step) loss += 10.0 * step + rank;
    for (const Taken& own : taken) {
      EXPECT_EQ(own.sum.steps, ranks * steps);
      EXPECT_EQ(own.sum.images, 8 * ranks * steps);
      EXPECT_DOUBLE_EQ(own.sum.loss, loss);
      EXPECT_EQ(own.sum.told_to_stop, 1);
    }
  }
}

// Else one would end, and the others wait for it.
TEST(TotalsExchange, ArrivesAtAllRanksAtTheSameSteps) {
  for (const double seconds : {1e-4, 0.03, 2.0}) {
    const auto taken = beats_of(3, 300, seconds);
    EXPECT_FALSE(taken[0].at.empty());
    EXPECT_EQ(taken[0].at, taken[1].at);
    EXPECT_EQ(taken[0].at, taken[2].at);
  }
}

TEST(TotalsExchange, IsRareWhereStepsAreQuickAndAtOnceWhereTheyAreSlow) {
  EXPECT_LT(beats_of(2, 300, 1e-3)[0].at.size(), 10U);
  const auto slow = beats_of(2, 10, 2.0);
  // From when it is known that they are slow.
  EXPECT_EQ(slow[0].at, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace sluice::train
