// team.h - the processes of one contender, in the driver.
//
// The driver starts all processes at once; each connects to the team's socket. To end them the
// driver closes the sockets, then sends SIGTERM, then SIGKILL. They also end if the driver dies.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "bench/allreduce/contender.h"
#include "bench/program.h"

namespace sluice::bench {

// SIGINT, SIGTERM, SIGHUP and SIGPIPE as a file descriptor. Create one in the driver, before any
// team.
class StopSignals {
 public:
  StopSignals();
  int fd() const { return fd_.number(); }
  // Throws Stopped if one of these signals has arrived.
  void throw_if_any() const;

 private:
  base::Fd fd_;
};

struct TeamOptions {
  std::string name;
  std::vector<std::string>
      launcher;  // mpirun and its arguments; empty: the driver starts each rank
  std::vector<std::string> interpreter;  // of the program, such as python3; empty: none
  std::string program;
  std::string extra;   // passed to every rank
  int ranks = 2;       // of the all-reduce
  int processes = 2;   // that connect: one per rank, or one for all ranks
  std::string folder;  // temporary folder for the socket and the log
  std::chrono::seconds slice_limit{180};
  // Called in each child process before exec, to set its host and environment.
  std::function<void(Rank)> prepare = [](Rank) {};
};

struct SliceResult {
  double operation_s = 0;  // the slowest rank's time per batch; the median over the batches
  double cpu_s = 0;        // processor time of all ranks, mean over the batches
};

class Team {
 public:
  // Returns when all processes have connected; throws Error if one does not.
  Team(TeamOptions options, const StopSignals& signals);
  ~Team();
  Team(Team&&) = delete;

  const std::string& name() const { return options_.name; }

  // Sends a request to every process and returns the replies. Throws Error and ends the team if a
  // process dies or a reply takes too long.
  std::vector<std::string> request(std::string_view message);

  // Runs a slice. Throws Error and ends the team if a result is wrong, a process dies or the slice
  // takes too long.
  SliceResult run(const SliceRequest& slice);

 private:
  void start(const std::vector<std::string>& command, Rank rank);
  void await_processes();
  void end(bool at_once);
  bool reap();
  bool all_ended_within(std::chrono::milliseconds limit);
  [[noreturn]] void fail(const std::string& what);
  std::string last_error_line() const;

  TeamOptions options_;
  const StopSignals& signals_;
  std::string job_;
  std::string socket_;
  std::vector<pid_t> children_;
  std::string exit_text_;  // how the first child ended unexpectedly
  bool ending_ = false;
  struct Process {
    base::Fd socket;
    base::Fd process;  // a pidfd
  };
  std::vector<Process> processes_;
};

}  // namespace sluice::bench
