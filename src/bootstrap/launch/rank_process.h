// rank_process.h - a rank as its launcher sees it: a process, its output, and how it ended.
//
// A rank leads a process group of its own, so what it starts is signalled with it, and a terminal's
// signals reach it only through the launcher. It is killed when the launcher's thread that started
// it ends. It stays a zombie until the object goes, so that its number means nobody else.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "bootstrap/environment.h"
#include "bootstrap/launch/line_relay.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::bootstrap {

struct RankCommand {
  Rank rank = 0;
  std::string path;                      // of the program
  std::vector<std::string> arguments;    // its name first
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::span<const int> cores;            // to run on; empty: as the launcher
  sigset_t signals{};                    // the mask it begins with
  std::string prefix;                    // of its lines: "[3] "
  bool draws = false;                    // writes where its output goes itself, not by lines
  int out = 1;                           // where its output goes
  int err = 2;
};

struct RankEnd {
  bool by_signal = false;
  int number = 0;  // of the signal, or the exit status

  bool failed() const { return by_signal || number != 0; }
  // "exited with status 7", "was killed by SIGSEGV (Segmentation fault)".
  std::string describe() const;
};

class RankProcess {
 public:
  // Fails where the program cannot be run at all.
  static Result<RankProcess> start(const RankCommand& command);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess();  // kills what is left of its group

  pid_t pid() const { return pid_; }
  int process() const { return process_.number(); }  // a pidfd: readable when it has ended
  LineRelay& out() { return out_; }
  LineRelay& err() { return err_; }

  // To it and all it has started.
  void send(int signal) const;
  // Looks whether it has ended; true when it has, and not earlier.
  bool look_for_end();
  const std::optional<RankEnd>& end() const { return end_; }

 private:
  RankProcess(pid_t pid, base::Fd process, LineRelay out, LineRelay err)
      : pid_{pid}, process_{std::move(process)}, out_{std::move(out)}, err_{std::move(err)} {}

  pid_t pid_;
  base::Fd process_;
  LineRelay out_;
  LineRelay err_;
  std::optional<RankEnd> end_;
};

// Kills what the ranks have started if the launcher is killed.
//
// A rank dies with its launcher (PR_SET_PDEATHSIG), but what the rank has started, say from a shell
// script, does not. A child process knows the process groups of all ranks and kills them when the
// launcher ends without destroying this object.
class OrphanReaper {
 public:
  // Forks. If that fails there is no such child, and the ranks themselves still die.
  OrphanReaper();
  ~OrphanReaper();
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

  void watch(pid_t group);

 private:
  base::Fd pipe_;
  pid_t process_ = -1;
};

// Finds a program as a shell does: a name with a slash is a path, any other is looked up on PATH.
// The error says what to write instead.
Result<std::string> find_program(const std::string& name, const Environment& environment);

// "SIGTERM".
std::string signal_name(int signal);

}  // namespace sluice::bootstrap
