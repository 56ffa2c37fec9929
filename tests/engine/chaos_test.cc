// Injects faults at random moments, on one machine and between hosts.
//
//   SLUICE_CHAOS_RUNS=1000   number of runs of each test (150 on one machine, 30 between hosts)
//   SLUICE_CHAOS_SEED=n      seed of the first run; run i has seed n + i, so one can be repeated
#include "tests/engine/chaos.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/format.h"
#include "tests/box/cluster_box.h"

namespace sluice::engine::chaos {
namespace {

pid_t start_here(int /*host*/, const std::function<int()>& body) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  _exit(body());
}

TEST(Chaos, EverySurvivorNamesTheCulpritInTimeAndNoSumIsWrong) {
  const std::string cache = testing::TempDir() + base::format("chaos-{}", getpid());
  run_many(150, 1, {.start = start_here, .environment = {{"SLUICE_CACHE", cache}}});
  std::filesystem::remove_all(cache);
}

// Here links are also cut or become slow, and hosts vanish.
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
