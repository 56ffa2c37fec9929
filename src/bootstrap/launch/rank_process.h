// rank_process.h - a rank as its launcher sees it: a process, its output, and how it ended.
//
// A rank leads a process group of its own, so its child processes receive the launcher's signals
// too, and a terminal's signals reach it only through the launcher. The kernel kills the rank when
// the launcher's thread that started it ends. An ended rank stays a zombie until the object is
// destroyed, so that its process number cannot mean another process.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "bootstrap/environment.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::bootstrap {

// Copies the output of a process, in whole lines, each with a prefix.
//
// A partial line waits for its end, so lines of several processes never mix. A line longer than
// kLongestLine is copied in pieces, so memory is bounded.
class LineRelay {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  // Reads from `source`, which must be non-blocking, and writes to `target`. Keeps the last lines.
  LineRelay(base::Fd source, int target, std::string prefix, std::size_t kept_lines)
      : source_{std::move(source)},
        target_{target},
        prefix_{std::move(prefix)},
        kept_lines_{kept_lines} {}

  bool open() const { return source_.open(); }
  int source() const { return source_.number(); }

  // Copies lines that can be read now, without blocking on the source. False: the target cannot be
  // written any more.
  bool copy_some();
  // Copies all that is left, including a line without an end, and closes the source.
  bool finish();

  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  enum class Read : std::uint8_t { Some, NothingNow, End };
  Read read_some();
  bool write_lines(bool also_partial);
  void keep(std::string_view line);

  base::Fd source_;
  int target_;
  std::string prefix_;
  std::size_t kept_lines_;
  std::string pending_;  // read and not written yet
  std::deque<std::string> last_lines_;
};

// Blocks until all is written. False: the descriptor cannot be written.
bool write_all(int fd, std::string_view text);

struct RankCommand {
  Rank rank = 0;
  std::string path;                      // of the program
  std::vector<std::string> arguments;    // the program's name first
  std::vector<std::string> environment;  // "NAME=value", all variables
  std::span<const int> cores;            // to run on; empty: those of the launcher
  sigset_t signals{};                    // its initial signal mask
  rlimit files{};                        // its limit of open files; zero: that of the launcher
  std::string prefix;                    // of its lines: "[3] "
  bool owns_terminal = false;            // it writes to `out` and `err` directly, without a relay
  int out = 1;                           // descriptors for its output
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
  // Fails when the program cannot be run.
  static Result<RankProcess> start(const RankCommand& command);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess();  // kills its process group

  pid_t pid() const { return pid_; }
  int process() const { return process_.number(); }  // a pidfd, readable when the process has ended
  LineRelay& out() { return out_; }
  LineRelay& err() { return err_; }

  // Sends the signal to its process group.
  void send(int signal) const;
  // True: the process has ended since the last call.
  bool check_end();
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

// Kills the child processes of all ranks when the launcher is killed.
//
// A rank dies with its launcher (PR_SET_PDEATHSIG), but the programs that it started, for example
// from a shell script, do not. The reaper is a child process that knows the process groups of all
// ranks. It kills them when the launcher ends without destroying this object.
class OrphanReaper {
 public:
  // Forks. If that fails there is no reaper; the ranks themselves still die with the launcher.
  OrphanReaper();
  ~OrphanReaper();
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

  void add(pid_t group);

 private:
  base::Fd pipe_;
  pid_t process_ = -1;
};

// Finds a program as a shell does: a name with a slash is a path, any other is looked up on PATH.
// The error says what to do.
Result<std::string> find_program(const std::string& name, const Environment& environment);

// "SIGTERM".
std::string signal_name(int signal);

}  // namespace sluice::bootstrap
