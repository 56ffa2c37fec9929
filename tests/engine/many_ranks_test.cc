// More ranks of a node than a rank looks at on every occasion: the culprit gets from rank to rank.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "sluice/communicator.h"
#include "tests/base/has.h"
#include "tests/transport/processes.h"

namespace sluice::engine {
namespace {

constexpr int kRanks = 71;
constexpr Rank kCulprit = 41;

// What every rank but the culprit returns when the culprit does this in a loop of all-reduces.
template <class Fault>
std::vector<std::string> errors_after(const std::string& algorithm, const Fault& fault) {
  const std::string job = base::format("many-{}-{}", getpid(), algorithm);
  auto errors = transport::testing_processes::run_ranks(kRanks, [&](Rank rank) -> std::string {
    const auto set = [](const char* name, const std::string& value) {
      setenv(name, value.c_str(), 1);  // NOLINT: this process has one thread
    };
    set("SLUICE_RANK", std::to_string(rank));
    set("SLUICE_RANKS", std::to_string(kRanks));
    set("SLUICE_LOCAL_RANKS", std::to_string(kRanks));
    set("SLUICE_JOB", job);
    set("SLUICE_TOKEN", "secret");
    Communicator comm = Communicator::from_env(std::chrono::seconds{40});
    comm.set_deadline(std::chrono::seconds{40});
    try {
      std::vector<float> data(3'000, 1);
      for (int round = 0; round < 1'000'000; ++round) {
        if (rank == kCulprit && round == 5) fault(comm);
        comm.all_reduce(data, {.algorithm = algorithm}).wait();
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  });
  errors.erase(errors.begin() + kCulprit);
  return errors;
}

class ManyRanks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, ManyRanks, testing::Values("ring", "recursive_doubling"));

TEST_P(ManyRanks, EverySurvivorNamesTheRankThatWasKilled) {
  for (const std::string& error : errors_after(GetParam(), [](Communicator&) { raise(SIGKILL); })) {
    EXPECT_TRUE(base::has(error, base::format("rank {} is lost (", kCulprit)) ||
                base::has(error, base::format("gave up because of rank {}", kCulprit)))
        << error;
  }
}

TEST_P(ManyRanks, EveryRankNamesTheOneThatCallsAnotherCollective) {
  const auto other_call = [](Communicator& comm) {
    std::vector<float> data(2'999, 1);
    comm.all_reduce(data).wait();
  };
  for (const std::string& error : errors_after(GetParam(), other_call))
    EXPECT_TRUE(base::has(error, base::format("rank {}", kCulprit))) << error;
}

}  // namespace
}  // namespace sluice::engine
