// A job of several hosts without a token, as other launchers start it: rank 0 says so on standard
// error, although no level of the log was set.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "sluice/communicator.h"
#include "tests/base/has.h"
#include "tests/transport/processes.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::engine {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct OtherLauncher {
  std::string name;
  Variables (*of_rank)(const std::string& rank, const std::string& port);
};

// Two hosts with one rank each.
const OtherLauncher kLaunchers[] = {
    {"torchrun",
     [](const std::string& rank, const std::string& port) -> Variables {
       return {{"TORCHELASTIC_RUN_ID", "none"},
               {"RANK", rank},
               {"WORLD_SIZE", "2"},
               {"LOCAL_RANK", "0"},
               {"LOCAL_WORLD_SIZE", "1"},
               {"MASTER_ADDR", "127.0.0.1"},
               {"MASTER_PORT", port},
               {"SLUICE_PORT", port}};
     }},
    {"srun",
     [](const std::string& rank, const std::string& port) -> Variables {
       return {{"SLURM_PROCID", rank},
               {"SLURM_STEP_ID", "0"},
               {"SLURM_JOB_ID", port},
               {"SLURM_STEP_NUM_TASKS", "2"},
               {"SLURM_LOCALID", "0"},
               {"SLURM_NODEID", rank},
               {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
               {"SLURM_STEP_NODELIST", "127.0.0.1"},
               {"SLUICE_PORT", port}};
     }},
    {"mpirun",
     [](const std::string& rank, const std::string& port) -> Variables {
       return {{"OMPI_COMM_WORLD_RANK", rank},
               {"OMPI_COMM_WORLD_SIZE", "2"},
               {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
               {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
               {"PMIX_NAMESPACE", port},
               {"MASTER_ADDR", "127.0.0.1"},
               {"SLUICE_TRANSPORT", "tcp"},
               {"SLUICE_PORT", port}};
     }},
};

std::uint16_t free_port() {
  const base::Fd listener =
      transport::listen_at(*transport::SocketAddress::numeric("127.0.0.1", 0));
  return transport::SocketAddress::of_socket(listener.number()).port();
}

// What each rank writes to standard error when it joins.
std::vector<std::string> said_by(const OtherLauncher& launcher, const Variables& more) {
  const std::string port = std::to_string(free_port());
  return transport::testing_processes::run_ranks(2, [&](Rank rank) {
    for (const char* name : {"SLUICE_TOKEN", "SLUICE_TOKEN_FILE", "SLUICE_LOG"}) unsetenv(name);
    setenv("SLUICE_NODE", std::to_string(rank).c_str(), 1);
    setenv("SLUICE_TOPOLOGY", "generic", 1);
    for (const auto& [name, value] : launcher.of_rank(std::to_string(rank), port))
      setenv(name.c_str(), value.c_str(), 1);
    for (const auto& [name, value] : more) setenv(name.c_str(), value.c_str(), 1);
    testing::internal::CaptureStderr();
    Communicator::from_env(std::chrono::seconds{20}).barrier();
    return testing::internal::GetCapturedStderr();
  });
}

TEST(TokenWarning, ReachesStandardErrorUnderEveryLauncher) {
  for (const OtherLauncher& launcher : kLaunchers) {
    const std::vector<std::string> said = said_by(launcher, {});
    EXPECT_TRUE(
        base::has(said[0], "SLUICE_TOKEN is not set, so any process that reaches 127.0.0.1:"))
        << launcher.name << ": " << said[0];
    EXPECT_EQ(said[1], "") << launcher.name;
  }
}

TEST(TokenWarning, IsNotGivenWithAToken) {
  for (const OtherLauncher& launcher : kLaunchers) {
    EXPECT_EQ(said_by(launcher, {{"SLUICE_TOKEN", "secret"}}), std::vector<std::string>(2))
        << launcher.name;
  }
}

}  // namespace
}  // namespace sluice::engine
