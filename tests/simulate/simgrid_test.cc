// SimGrid runs the same schedules on the same network, with contention. Simulated times are within
// 5% of its times. With SimGrid's blocking messages they are within 7%: these delay a sender until
// its message has arrived, which short messages show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "simulate/collective.h"
#include "tests/simulate/fabrics.h"
#include "tests/simulate/simgrid_replay.h"

namespace sluice::simulate {
namespace {

constexpr double kClose = 0.05;
constexpr double kCloseIfBlocking = 0.07;
constexpr int kRanks[] = {16, 64, 128};
constexpr double kBytes[] = {128 * 1024, 2 * 1024 * 1024, 32 * 1024 * 1024};

// Switches of 8 hosts with full uplinks, or with a quarter of them.
constexpr double kOversubscriptions[] = {1, 4};

class AgainstSimGrid : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_simgrid())
      GTEST_SKIP() << "SimGrid is not installed (libsimgrid-dev; tools/setup installs it)";
  }
};
INSTANTIATE_TEST_SUITE_P(Algorithms, AgainstSimGrid,
                         testing::Values("ring", "halving_doubling", "halving_doubling:far",
                                         "torus", "double_tree"),
                         [](const auto& name) {
                           std::string plain = name.param;
                           std::replace(plain.begin(), plain.end(), ':', '_');
                           return plain;
                         });

TEST_P(AgainstSimGrid, AgreesOnFatAndThinTrees) {
  const Algorithm& algorithm = *find_algorithm(GetParam()).value();
  for (const int ranks : kRanks) {
    for (const double bytes : kBytes) {
      // A tree splits long buffers into segments.
      const int segments = algorithm.uses_segments && bytes > 1e6 ? 8 : 1;
      const Shape shape = complete_shape(algorithm, {.ranks = ranks, .segments = segments}).value();
      const Schedule schedule = build_schedule(algorithm, shape);
      for (const double oversubscription : kOversubscriptions) {
        const cluster::Cluster fabric = thin_tree(8, oversubscription);
        const double theirs =
            replay_on_simgrid(schedule, fabric, bytes, NextMessage::OnceLeft).value();
        const double blocking =
            replay_on_simgrid(schedule, fabric, bytes, NextMessage::OnceArrived).value();
        CollectiveSimulator simulator = CollectiveSimulator::on(fabric, ranks).value();
        const auto done = simulator.run(algorithm, shape, {.bytes = bytes}).value();
        const double ours = *std::max_element(done.begin(), done.end());
        const std::string row = base::format(
            "| {} | {} | {} | {:.0f} | {:.3f} | {:.3f} | {:+.1f}% | {:+.1f}% |", GetParam(), ranks,
            oversubscription > 1 ? "thin" : "fat", bytes, theirs * 1e3, ours * 1e3,
            100 * (ours / theirs - 1), 100 * (ours / blocking - 1));
        base::print("{}\n", row);
        EXPECT_NEAR(ours, theirs, kClose * theirs) << row;
        EXPECT_NEAR(ours, blocking, kCloseIfBlocking * blocking) << row;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::simulate
