// team.h - the processes of one contender, as the driver sees them.
//
// All are started at once and connect to the team's socket. Whatever happens to the driver, they
// end: they are told to, then asked to, then made to, and they end by themselves when it is gone.
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

// SIGINT, SIGTERM, SIGHUP and SIGPIPE as something to wait for. One for the driver, made before any
// team.
class StopSignals {
 public:
  StopSignals();
  int fd() const { return fd_.number(); }
  // Throws Stopped when one of them came.
  void throw_if_any() const;

 private:
  base::Fd fd_;
};

struct TeamOptions {
  std::string name;
  std::vector<std::string>
      launcher;  // mpirun and its arguments; empty: the driver starts each rank
  std::vector<std::string> interpreter;  // of the program, where it needs one
  std::string program;
  std::string extra;   // passed to every rank
  int ranks = 2;       // of the all-reduce
  int processes = 2;   // that connect: one a rank, or one for all
  std::string folder;  // a temporary one, for what the team writes
  std::chrono::seconds slice_limit{180};
  // In every process that the driver starts, before its program: where it runs, its environment.
  std::function<void(Rank)> prepare = [](Rank) {};
};

struct SliceResult {
  double operation_s = 0;  // of each batch the slowest rank's, and of these the median
  double cpu_s = 0;        // processor time of all ranks together, mean over the batches
};

class Team {
 public:
  // Returns when all processes have connected; throws Error with a sentence when they do not.
  Team(TeamOptions options, const StopSignals& signals);
  ~Team();
  Team(Team&&) = delete;

  const std::string& name() const { return options_.name; }

  // What every process answers to an order. Throws Error when one died or the team took too long;
  // it is then over.
  std::vector<std::string> ask(std::string_view order);

  // What an all-reduce took. Throws Error when a result is wrong, a process died or the team took
  // too long; it is then over.
  SliceResult run(const SliceOrder& order);

 private:
  void start(const std::vector<std::string>& command, Rank rank);
  void await_processes();
  void end(bool at_once);
  bool reap();
  bool all_ended_within(std::chrono::milliseconds limit);
  [[noreturn]] void fail(const std::string& what);
  std::string last_words() const;

  TeamOptions options_;
  const StopSignals& signals_;
  std::string job_;
  std::string socket_;
  std::vector<pid_t> children_;
  std::string how_;  // the first child ended that was not told to
  bool ending_ = false;
  struct Process {
    base::Fd socket;
    base::Fd process;  // to kill it by
  };
  std::vector<Process> processes_;
};

}  // namespace sluice::bench
