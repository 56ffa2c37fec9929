// The fast run, step by step, against the exact one, event by event.
#include "simulate/step_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "simulate/collective.h"
#include "simulate/training.h"
#include "tests/simulate/fabrics.h"

namespace sluice::simulate {
namespace {

struct Times {
  double events;
  double steps;
};

Times both(const cluster::Cluster& cluster, const Algorithm& algorithm, int ranks, double bytes) {
  CollectiveSimulator simulator = CollectiveSimulator::on(cluster, ranks).value();
  Shape asked{.ranks = ranks};
  asked.segments = algorithm.uses_segments ? 4 : 1;
  const Shape shape = shape_on(algorithm, asked, simulator.topology()).value();
  const auto last = [&](RunMethod method) {
    const auto done = simulator.run(algorithm, shape, {.bytes = bytes}, method).value();
    return *std::max_element(done.begin(), done.end());
  };
  return {last(RunMethod::Events), last(RunMethod::Steps)};
}

TEST(StepRun, AgreesWithEventsOnRealClusters) {
  for (const char* name : {"mn-1", "abci", "sensetime-v", "tpu-v3-pod", "h200-hgx"}) {
    const cluster::Cluster cluster = cluster::find_cluster(name).value();
    for (const char* algorithm : {"ring", "hierarchical:ring", "torus", "hierarchical",
                                  "halving_doubling", "recursive_doubling", "direct"}) {
      for (const int ranks : {8, 32}) {
        for (const double bytes : {1e4, 1e6, 100e6}) {
          const Times times = both(cluster, *find_algorithm(algorithm).value(), ranks, bytes);
          // The gaps of a burst spread its messages, which then share links with fewer others.
          const double within = std::string_view{algorithm} == "direct" ? 0.1 : 0.03;
          EXPECT_NEAR(times.steps, times.events, within * times.events)
              << algorithm << " on " << name << ", " << ranks << " ranks, " << bytes << " bytes";
        }
      }
    }
  }
}

TEST(StepRun, AgreesWithEventsOnTreesTo20PercentAndWithShortMessagesTo30) {
  // Event by event, segments that run ahead take link time from segments that ranks wait for. So
  // the pipeline is less even than step by step.
  for (const char* name : {"mn-1", "abci", "sensetime-v"}) {
    const cluster::Cluster cluster = cluster::find_cluster(name).value();
    for (const char* algorithm : {"double_tree", "hierarchical:double_tree"}) {
      for (const int ranks : {8, 32, 64}) {
        for (const double bytes : {1e4, 1e6, 100e6}) {
          const Times times = both(cluster, *find_algorithm(algorithm).value(), ranks, bytes);
          EXPECT_NEAR(times.steps, times.events, (bytes > 1e4 ? 0.2 : 0.3) * times.events)
              << algorithm << " on " << name << ", " << ranks << " ranks, " << bytes << " bytes";
        }
      }
    }
  }
}

TEST(StepRun, IsTooSlowIfShortMessagesShareHostMemory) {
  // Short ring messages all cross a node's host memory. Each frees it for the others while its
  // latency passes, which the step-by-step run does not model.
  const Times times =
      both(cluster::find_cluster("sensetime-p").value(), *find_algorithm("ring").value(), 32, 1e6);
  EXPECT_GE(times.steps, times.events);
  EXPECT_LE(times.steps, 1.4 * times.events);
}

TEST(StepRun, AgreesWithEventsOnAThinTree) {
  for (const char* algorithm : {"ring", "halving_doubling", "halving_doubling:far", "torus"}) {
    for (const double bytes : {1e4, 1e6, 16e6}) {
      const Times times = both(thin_tree(4, 4), *find_algorithm(algorithm).value(), 32, bytes);
      EXPECT_NEAR(times.steps, times.events, 0.03 * times.events) << algorithm << " " << bytes;
    }
  }
}

TEST(ThinTree, SlowsFarFirstHalvingDoublingButNotARing) {
  // 32 nodes behind switches of 4 with a quarter of the uplinks, 64 MB.
  const double bytes = 64e6;
  const auto slowdown = [&](const char* name) {
    const Algorithm& algorithm = *find_algorithm(name).value();
    return both(thin_tree(4, 4), algorithm, 32, bytes).events /
           both(thin_tree(4, 1), algorithm, 32, bytes).events;
  };
  EXPECT_LT(slowdown("ring"), 1.001);
  const double near = slowdown("halving_doubling");
  const double far = slowdown("halving_doubling:far");
  // Near first: of 31/32 of the buffer each way, 7/32 cross an uplink that is 4 times too thin.
  EXPECT_NEAR(near, (24 + 7 * 4) / 31.0, 0.01);
  // Far first: 28/32 do.
  EXPECT_NEAR(far, (3 + 28 * 4) / 31.0, 0.05);
}

TEST(Checks, ImpossibleResultsAreErrors) {
  const FlowNetwork network = FlowNetwork::of(flat_fabric(), 4).value();
  EXPECT_TRUE(check_all_reduce(network, 4e9, 6).ok()) << "1.5 x 4 GB at 1 GB/s";
  EXPECT_NE(check_all_reduce(network, 4e9, 5.9).message().find("report it as a bug"),
            std::string::npos);
  EXPECT_TRUE(check_scaling({{2, 1}, {4, 1.5}}).ok());
  EXPECT_TRUE(check_scaling({{5, 1}, {6, 1}}).ok()) << "trees of the same depth";
  EXPECT_NE(check_scaling({{2, 1}, {4, 1}}).message().find("exactly the same"), std::string::npos);
  EXPECT_TRUE(check_efficiency(8, 1).ok());
  EXPECT_FALSE(check_efficiency(8, 1.01).ok());
}

}  // namespace
}  // namespace sluice::simulate
