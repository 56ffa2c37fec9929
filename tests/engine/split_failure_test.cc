// Ranks that wait in split() for a rank that leaves or is killed. The ranks are processes that
// connect by TCP.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
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

// Runs the body at every rank, except that the leaving rank runs `leave`. Returns the errors of the
// others: "late" when one comes only at the deadline.
template <class Leave, class Body>
std::vector<std::string> errors_after(const std::vector<int>& nodes, Rank leaving,
                                      const Leave& leave, const Body& body) {
  const std::uint16_t port = free_port();
  auto errors = transport::testing_processes::run_ranks(
      static_cast<int>(nodes.size()), [&](Rank rank) -> std::string {
        Communicator comm = join(rank, nodes, port);
        comm.set_deadline(20s);
        if (rank == leaving) {
          leave(comm);
          return "";
        }
        const auto begin = Clock::now();
        try {
          body(comm);
        } catch (const Error& error) {
          return Clock::now() - begin > 10s ? std::string{"late"} : error.what();
        }
        return "no error";
      });
  errors.erase(errors.begin() + leaving);
  return errors;
}

// A survivor that has failed already may be the first that tells.
void expect_names(Rank culprit, const std::string& error) {
  EXPECT_TRUE(base::has(error, base::format("rank {} is lost (", culprit)) ||
              base::has(error, base::format("gave up because of rank {}", culprit)))
      << error << ", not rank " << culprit;
}

class SplitFailure : public testing::TestWithParam<std::vector<int>> {};
INSTANTIATE_TEST_SUITE_P(Nodes, SplitFailure,
                         testing::Values(std::vector{0, 1, 2}, std::vector{0, 0, 1},
                                         std::vector{0, 1, 1, 0, 2}));

TEST_P(SplitFailure, EverySurvivorNamesTheRankThatLeftAtOnce) {
  for (Rank leaving = 0; leaving < std::ssize(GetParam()); ++leaving) {
    // The first collective of split(), so that the others go on to connect.
    const auto leave = [](Communicator& comm) {
      std::vector<std::int64_t> colours_and_keys(2 * static_cast<std::size_t>(comm.size()), 0);
      comm.all_reduce(colours_and_keys).wait();
    };
    const auto body = [](Communicator& comm) { comm.split(0).barrier(); };
    for (const std::string& error : errors_after(GetParam(), leaving, leave, body))
      expect_names(leaving, error);
  }
}

TEST_P(SplitFailure, EverySurvivorNamesTheRankThatWasKilledAtAnyMoment) {
  std::mt19937 random{20};
  for (int run = 0; run < 4; ++run) {
    for (Rank leaving = 0; leaving < std::ssize(GetParam()); ++leaving) {
      const auto moment = std::chrono::microseconds{random() % 8'000};
      const auto body = [](Communicator& comm) {
        while (true) comm.split(0).barrier();
      };
      const auto leave = [&](Communicator& comm) {
        std::thread{[&] {
          std::this_thread::sleep_for(moment);
          kill(getpid(), SIGKILL);
        }}.detach();
        body(comm);
      };
      for (const std::string& error : errors_after(GetParam(), leaving, leave, body))
        expect_names(leaving, error);
    }
  }
}

TEST(SplitFailure, AFailedSplitFailsTheWholeCommunicator) {
  const auto body = [](Communicator& comm) {
    std::string first;
    try {
      comm.split(0);
    } catch (const Error& error) {
      first = error.what();
    }
    try {
      comm.barrier();
    } catch (const Error& error) {
      if (first == error.what()) throw;
    }
    throw Error{Status{Code::InvalidArgument, "not poisoned with: " + first}};
  };
  const auto leave = [](Communicator& comm) {
    std::vector<std::int64_t> colours_and_keys(2 * static_cast<std::size_t>(comm.size()), 0);
    comm.all_reduce(colours_and_keys).wait();
  };
  for (const std::string& error : errors_after({0, 1, 2}, 2, leave, body)) expect_names(2, error);
}

}  // namespace
}  // namespace sluice::engine
