// Ranks that wait in split() for a rank that leaves. The ranks are processes that connect by TCP.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "sluice/communicator.h"
#include "tests/base/has.h"
#include "tests/transport/processes.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using transport::Clock;

std::uint16_t free_port() {
  const base::Fd listener =
      transport::listen_at(*transport::SocketAddress::numeric("127.0.0.1", 0));
  return transport::SocketAddress::of_socket(listener.number()).port();
}

Communicator join(Rank rank, const std::vector<int>& nodes, std::uint16_t port) {
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
  };
  set("SLUICE_RANK", std::to_string(rank));
  set("SLUICE_RANKS", std::to_string(nodes.size()));
  set("SLUICE_NODE", std::to_string(nodes[static_cast<std::size_t>(rank)]));
  set("SLUICE_JOB", base::format("split-{}", port));
  set("SLUICE_TOKEN", "split");
  set("MASTER_ADDR", "127.0.0.1");
  set("SLUICE_PORT", std::to_string(port));
  set("SLUICE_TOPOLOGY", "generic");
  return Communicator::from_env(20s);
}

// The collectives with which a rank takes part in split(0), without its last step.
void begin_split(Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::int64_t> colours_and_keys(2 * ranks, 0);
  comm.all_reduce(colours_and_keys.data(), 2 * ranks, {.type = DataType::I64}).wait();
  std::vector<std::int64_t> blocks(ranks, 0);
  comm.all_reduce(blocks.data(), ranks, {.type = DataType::I64}).wait();
  comm.barrier();
}

// The error of a rank that stays. A rank that has all its connections may leave split(), and then
// learns of the loss in its first collective.
std::string error_of_split(Communicator& comm) {
  try {
    comm.split(0).barrier();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The errors of the ranks that stay; "late" when they come only at the deadline.
std::vector<std::string> errors_after(const std::vector<int>& nodes, Rank leaving) {
  const std::uint16_t port = free_port();
  auto errors = transport::testing_processes::run_ranks(
      static_cast<int>(nodes.size()), [&](Rank rank) -> std::string {
        Communicator comm = join(rank, nodes, port);
        comm.set_deadline(20s);
        if (rank == leaving) {
          begin_split(comm);
          return "";
        }
        const auto begin = Clock::now();
        const std::string error = error_of_split(comm);
        if (Clock::now() - begin > 10s) return "late";
        // A rank that leaves at once could be taken for the first that did.
        std::this_thread::sleep_for(1s);
        if (error.starts_with("split,") && error_of_split(comm) != error) return "not poisoned";
        return error;
      });
  errors.erase(errors.begin() + leaving);
  return errors;
}

// Whether the rank allocates the memory that other ranks of its node share.
bool leads_others(const std::vector<int>& nodes, Rank rank) {
  const int node = nodes[static_cast<std::size_t>(rank)];
  return std::find(nodes.begin(), nodes.end(), node) - nodes.begin() == rank &&
         std::count(nodes.begin(), nodes.end(), node) > 1;
}

class SplitFailure : public testing::TestWithParam<std::vector<int>> {};
INSTANTIATE_TEST_SUITE_P(Nodes, SplitFailure,
                         testing::Values(std::vector{0, 1, 2}, std::vector{0, 0, 1},
                                         std::vector{0, 1, 1, 0, 2}));

TEST_P(SplitFailure, EverySurvivorNamesTheRankThatLeftAtOnce) {
  for (Rank leaving = 0; leaving < std::ssize(GetParam()); ++leaving) {
    if (leads_others(GetParam(), leaving)) continue;  // begin_split() allocates nothing
    for (const std::string& error : errors_after(GetParam(), leaving)) {
      // A survivor that has failed already may be the first that tells.
      EXPECT_TRUE(base::has(error, base::format("rank {} is lost (", leaving)) ||
                  base::has(error, base::format("gave up because of rank {}", leaving)))
          << error << ", not rank " << leaving;
    }
  }
}

}  // namespace
}  // namespace sluice::engine
