// Ranks that wait in split() for a rank that leaves. The ranks are processes that connect by TCP.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
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
        try {
          (void)comm.split(0);
        } catch (const Error& error) {
          if (Clock::now() - begin > 10s) return "late";
          std::string text = error.what();
          try {
            comm.barrier();
          } catch (const Error& later) {
            return text == later.what() ? text : base::format("{}, later {}", text, later.what());
          }
        }
        return "no error";
      });
  errors.erase(errors.begin() + leaving);
  return errors;
}

class SplitFailure : public testing::TestWithParam<std::vector<int>> {};
INSTANTIATE_TEST_SUITE_P(Nodes, SplitFailure,
                         testing::Values(std::vector{0, 1, 2}, std::vector{0, 0, 1},
                                         std::vector{0, 1, 1, 0, 2}));

TEST_P(SplitFailure, EverySurvivorNamesTheRankThatLeftAtOnce) {
  for (const Rank leaving : {0, 1, 2}) {
    for (const std::string& error : errors_after(GetParam(), leaving)) {
      EXPECT_TRUE(base::has(error, "split, rank ")) << error;
      EXPECT_TRUE(base::has(error, base::format("rank {} is lost (", leaving))) << error;
    }
  }
}

}  // namespace
}  // namespace sluice::engine
