// Faults at random moments on one machine.
//
//   SLUICE_CHAOS_RUNS=1000   how many (150)
//   SLUICE_CHAOS_SEED=n      of the first; run i has seed n + i, so one can be run again alone
#include "tests/engine/chaos.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/format.h"

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

}  // namespace
}  // namespace sluice::engine::chaos
