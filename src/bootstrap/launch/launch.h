// launch.h - starts the ranks of a program on this machine and sees them to their end.
//
// Every rank gets its place as SLUICE_* variables (environment.h), its share of the cores, and a
// number of threads to match. Output is passed on line by line. When a rank fails the others are
// asked to end, and made to after a grace; when the launcher is killed all are killed. After a
// failure all ranks may be started again, so many times: what they go on from is theirs to know.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::bootstrap {

inline constexpr int kMostLocalRanks = 256;

struct LaunchOptions {
  int ranks = 1;                          // of this machine
  std::vector<std::string> program;       // and its arguments
  int hosts = 1;                          // machines that each run so many
  int host = 0;                           // which of them this is; its ranks begin at host x ranks
  std::string master;                     // of the first host; needed where there are several
  std::uint16_t port = 0;                 // there, where the ranks meet
  std::string token;                      // empty: on one host a random one, on several none
  bool prefix = true;                     // "[rank] " before every line
  bool first_rank_owns_terminal = false;  // this host's first rank has the terminal to itself
  bool bind = true;                       // every rank to its share of the cores
  std::optional<std::chrono::milliseconds> deadline;
  std::chrono::milliseconds grace{5000};  // from SIGTERM to SIGKILL
  int max_restarts = 0;
  // Exit statuses with which a rank final_statuses, having said why itself: they end the job
  // without a word, and a restart would change nothing.
  std::vector<int> final_statuses;
  std::int64_t started_ns = 0;  // when the job began, since 1970, for SLUICE_STARTED; 0: now
  int out = 1;                  // where the output goes
  int err = 2;
  std::function<void(const std::string&)> report = [](const std::string&) {
  };  // what happens meanwhile
};

struct LaunchOutcome {
  struct Failure {
    Rank rank = 0;                       // among those of all hosts
    std::string how;                     // "exited with status 7"
    int status = 0;                      // 7; -1: it was killed
    std::deque<std::string> last_lines;  // of its standard error
  };
  std::optional<Failure> first_failure;
  int signal = 0;            // that the launcher was stopped by
  bool out_of_time = false;  // the deadline passed
  bool output_lost = false;  // nobody reads the output any more
  int restarts = 0;          // before this end

  bool succeeded() const { return !first_failure && signal == 0 && !out_of_time && !output_lost; }
};

// Returns when every rank has ended. Takes SIGINT, SIGTERM, SIGHUP and SIGQUIT and passes them on
// (a second one kills), SIGUSR1 and SIGUSR2 too. Fails, with nothing left running, where the
// program cannot be started. The outcome is the last attempt's. REQUIRES: no other thread takes
// these signals.
Result<LaunchOutcome> launch(const LaunchOptions& options);

// Whether all ranks are to be started once more: a rank failed of itself, neither by wrong input
// (status 2) nor with an answer, nobody asked for an end, and a restart is left.
bool should_restart(const LaunchOptions& options, const LaunchOutcome& outcome);

}  // namespace sluice::bootstrap
