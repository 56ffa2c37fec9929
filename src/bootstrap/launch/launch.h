// launch.h - starts the ranks of a program on this machine and waits until all have ended.
//
// Every rank receives its numbers as SLUICE_* variables (environment.h), its share of the cores,
// and a matching number of threads. Output is copied line by line. When a rank fails, the launcher
// sends SIGTERM to the others, and SIGKILL after a grace period; when the launcher is killed, all
// ranks are killed. After a failure all ranks may be started again, up to a limit. The program
// decides where it resumes, for example at its newest checkpoint.
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

inline constexpr int kMostLocalRanks = 4096;

struct LaunchOptions {
  int ranks = 1;                     // on this machine
  std::vector<std::string> program;  // and its arguments
  int hosts = 1;                     // machines, with `ranks` ranks each
  int host = 0;                      // the number of this machine; its first rank is host x ranks
  std::string master;                // address of the first host; needed for several hosts
  std::uint16_t port = 0;            // of the rendezvous there
  std::string token;                 // empty: on one host a random one; see is_open_to_others()
  bool prefix = true;                // put "[rank] " before every line
  bool first_rank_owns_terminal = false;  // this host's first rank writes to it directly
  bool bind = true;                       // pin every rank to its share of the cores
  std::optional<std::chrono::milliseconds> deadline;
  std::chrono::milliseconds grace{5000};  // from SIGTERM to SIGKILL
  int max_restarts = 0;
  // Exit statuses that are neither reported nor followed by a restart: the rank has printed the
  // reason, and a restart would have the same result.
  std::vector<int> final_statuses;
  std::int64_t started_ns = 0;  // start of the job, since 1970, for SLUICE_STARTED; 0: now
  int out = 1;                  // descriptors for the output
  int err = 2;
  // Receives messages about signals, failures and restarts.
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

struct LaunchOutcome {
  struct Failure {
    Rank rank = 0;                       // the global number
    std::string how;                     // "exited with status 7"
    int status = 0;                      // 7; -1: killed by a signal
    std::deque<std::string> last_lines;  // of its standard error
    // The rank that made it fail, as it reports (failure_report.h), and the error.
    std::optional<Rank> culprit;
    std::string report;
  };
  std::optional<Failure> first_failure;
  int signal = 0;            // the signal that stopped the launcher; 0: none
  bool out_of_time = false;  // the deadline passed
  bool output_lost = false;  // the output cannot be written any more
  int restarts = 0;          // before the last attempt

  bool succeeded() const { return !first_failure && signal == 0 && !out_of_time && !output_lost; }
};

// Returns when every rank has ended. Forwards SIGINT, SIGTERM, SIGHUP and SIGQUIT to the ranks (a
// second one kills them), and SIGUSR1 and SIGUSR2. Fails, with nothing left running, when the
// program cannot be started. The outcome is that of the last attempt. REQUIRES: no other thread
// handles these signals.
Result<LaunchOutcome> launch(const LaunchOptions& options);

// Whether processes of other machines can reach the job's master. Such a job needs a token: without
// one, anyone there who guesses the job's name could join. launch() refuses to start other hosts
// than host 0 without it; host 0 may make one with random_token() for all of them.
bool is_open_to_others(const LaunchOptions& options);
std::string random_token();

// "rank 1 failed first: it exited with status 7", or, when that rank reports a culprit, "rank 2
// failed first: rank 0, which exited with status 3, reports: all_reduce #1, ...; rank 2 is stopped
// (...)".
std::string describe(const LaunchOutcome::Failure& failure);

// Whether all ranks should be started again. True when a rank failed and a restart is left. False
// when the rank's status was final or 2 (wrong input), when a signal or the deadline ended the job,
// or when the output cannot be written.
bool should_restart(const LaunchOptions& options, const LaunchOutcome& outcome);

}  // namespace sluice::bootstrap
