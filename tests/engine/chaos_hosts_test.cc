// Faults at random moments between hosts: the same as on one machine, and links that are cut, hosts
// that vanish, links that become slow. SLUICE_CHAOS_RUNS and SLUICE_CHAOS_SEED as in chaos_test.cc.
#include <gtest/gtest.h>

#include "tests/box/cluster_box.h"
#include "tests/engine/chaos.h"

namespace sluice::engine::chaos {
namespace {

TEST(ChaosBetweenHosts, EverySurvivorNamesTheCulpritInTimeAndNoSumIsWrong) {
  constexpr int kHosts = 4;
  constexpr int kMbit = 1000;
  constexpr int kSlowMbit = 10;
  auto made = box::ClusterBox::make({.hosts = kHosts, .mbit_per_s = kMbit});
  if (!made.ok()) GTEST_SKIP() << made.status().message();
  box::ClusterBox cluster = std::move(made).value();
  const auto expect = [](const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); };
  run_many(30, kHosts,
           {.start = [&](int host, const auto& body) { return cluster.start(host, body); },
            .cut = [&](int host) { expect(cluster.cut(host)); },
            .slow = [&](int host) { expect(cluster.set_rate(host, kSlowMbit)); },
            .mend =
                [&](int host) {
                  expect(cluster.mend(host));
                  expect(cluster.set_rate(host, kMbit));
                },
            .address = [&](int host) { return cluster.address(host); },
            .environment = {{"SLUICE_TOKEN", "chaos"}, {"SLUICE_TOPOLOGY", "generic"}}});
}

}  // namespace
}  // namespace sluice::engine::chaos
