#include "bootstrap/launch/rank_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/host.h"

namespace sluice::bootstrap {
namespace {

struct Pipe {
  base::Fd read_end;
  base::Fd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Status{
        Code::NoMemory,
        base::format("cannot create a pipe for a rank's output: {}{}", std::strerror(errno),
                     errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "")};
  }
  return Pipe{base::Fd{ends[0]}, base::Fd{ends[1]}};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts)
    all.push_back(const_cast<char*>(text.c_str()));  // NOLINT: exec only reads
  all.push_back(nullptr);
  return all;
}

struct Child {
  const RankCommand& command;
  pid_t launcher;
  char** arguments;
  char** environment;
  int out;
  int err;
  int error;  // receives errno when the program cannot be run
};

// Runs between fork and exec, so it makes only async-signal-safe calls.
[[noreturn]] void run_program(const Child& child) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.launcher) _exit(127);  // the launcher ended before prctl()
  const bool keeps_input = child.command.rank == 0 && isatty(STDIN_FILENO) == 0;
  const int nothing = keeps_input ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(child.out, STDOUT_FILENO);
  dup2(child.err, STDERR_FILENO);
  // Without pinning a rank is slower but correct.
  if (!child.command.cores.empty()) (void)pin_to(child.command.cores);
  if (child.command.files.rlim_max > 0) setrlimit(RLIMIT_NOFILE, &child.command.files);
  sigprocmask(SIG_SETMASK, &child.command.signals, nullptr);
  execvpe(child.command.path.c_str(), child.arguments, child.environment);
  const int why = errno;
  (void)!write(child.error, &why, sizeof why);
  _exit(127);
}

base::Fd without_blocking(base::Fd fd) {
  fcntl(fd.number(), F_SETFL, O_NONBLOCK);
  return fd;
}

bool runnable(const std::string& path) {
  struct stat found {};
  return access(path.c_str(), X_OK) == 0 && stat(path.c_str(), &found) == 0 &&
         S_ISREG(found.st_mode);
}

constexpr std::size_t kMostGroups = 4096;
constexpr pid_t kFinished = 0;

// The reaper process. It makes only async-signal-safe calls, because it runs after fork.
[[noreturn]] void run_reaper(int pipe) {
  setpgid(0, 0);  // signals of the terminal must not reach the reaper
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  static std::array<pid_t, kMostGroups> groups;
  std::size_t count = 0;
  while (true) {
    pid_t group = kFinished;
    const ssize_t got = read(pipe, &group, sizeof group);
    if (got < 0 && errno == EINTR) continue;
    if (got == static_cast<ssize_t>(sizeof group)) {
      if (group == kFinished) _exit(0);
      if (count < kMostGroups) groups[count++] = group;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
    _exit(0);
  }
}

}  // namespace

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // another program has made the output non-blocking
      pollfd polled{fd, POLLOUT, 0};
      poll(&polled, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

LineRelay::Read LineRelay::read_some() {
  std::array<char, 1 << 16> part;
  while (true) {
    const ssize_t count = read(source_.number(), part.data(), part.size());
    if (count > 0) {
      pending_.append(part.data(), static_cast<std::size_t>(count));
      return Read::Some;
    }
    if (count < 0 && errno == EINTR) continue;
    return count < 0 && errno == EAGAIN ? Read::NothingNow : Read::End;
  }
}

bool LineRelay::copy_some() {
  if (!open()) return true;
  if (read_some() != Read::End) return write_lines(false);
  source_.reset();
  return write_lines(true);
}

bool LineRelay::finish() {
  bool written = true;
  while (open() && written && read_some() == Read::Some) written = write_lines(false);
  source_.reset();
  return write_lines(true) && written;
}

bool LineRelay::write_lines(bool also_partial) {
  std::string out;
  std::string_view rest = pending_;
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;
       rest.remove_prefix(end + 1)) {
    keep(rest.substr(0, end));
    out.append(prefix_).append(rest.substr(0, end + 1));
  }
  if (!rest.empty() && (also_partial || rest.size() > kLongestLine)) {
    keep(rest);
    out.append(prefix_).append(rest).append("\n");
    rest = {};
  }
  pending_.erase(0, pending_.size() - rest.size());
  return write_all(target_, out);
}

void LineRelay::keep(std::string_view line) {
  constexpr std::size_t kKeptBytes = 2000;  // of one line
  if (kept_lines_ == 0) return;
  if (last_lines_.size() == kept_lines_) last_lines_.pop_front();
  last_lines_.emplace_back(line.substr(0, kKeptBytes));
}

Result<std::string> find_program(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) {
    if (runnable(name)) return name;
    const bool there = access(name.c_str(), F_OK) == 0;
    return Status{Code::InvalidArgument,
                  base::format("{} {}", base::quote(name),
                               there ? "is not a program that can be run" : "does not exist")};
  }
  const std::string folders =
      environment.text(variable::kPath).value_or(std::string{variable::kPath.fallback});
  for (std::string_view rest = folders; !name.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    std::string path = base::format("{}/{}", folder.empty() ? "." : folder, name);
    if (runnable(path)) return path;
    if (folder.size() == rest.size()) break;
    rest.remove_prefix(folder.size() + 1);
  }
  return Status{
      Code::InvalidArgument,
      base::format(
          "there is no program {} on PATH{}", base::quote(name),
          !name.empty() && runnable("./" + name) ? base::format(": write ./{}", name) : "")};
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? base::format("SIG{}", name) : base::format("signal {}", signal);
}

std::string RankEnd::describe() const {
  if (!by_signal) return base::format("exited with status {}", number);
  const char* const meaning = sigdescr_np(number);
  return base::format("was killed by {} ({})", signal_name(number),
                      meaning != nullptr ? meaning : "unknown");
}

Result<RankProcess> RankProcess::start(const RankCommand& command) {
  constexpr std::size_t kKeptLines = 20;
  Result<Pipe> out = make_pipe();
  Result<Pipe> err = make_pipe();
  Result<Pipe> error = make_pipe();
  for (const auto* pipe : {&out, &err, &error}) {
    if (!pipe->ok()) return pipe->status();
  }
  std::vector<char*> arguments = pointers(command.arguments);
  std::vector<char*> environment = pointers(command.environment);
  const Child child{command,
                    getpid(),
                    arguments.data(),
                    environment.data(),
                    command.owns_terminal ? command.out : out.value().write_end.number(),
                    command.owns_terminal ? command.err : err.value().write_end.number(),
                    error.value().write_end.number()};
  const pid_t pid = fork();
  if (pid < 0) {
    return Status{
        Code::NoMemory,
        base::format("cannot start rank {}: {}{}", command.rank, std::strerror(errno),
                     errno == EAGAIN ? ": raise the limit of processes (ulimit -u)" : "")};
  }
  if (pid == 0) run_program(child);
  setpgid(pid, pid);  // both processes do this, because either may run first
  RankProcess rank{
      pid, base::Fd{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))},
      LineRelay{without_blocking(std::move(out.value().read_end)), command.out, command.prefix, 0},
      LineRelay{without_blocking(std::move(err.value().read_end)), command.err, command.prefix,
                kKeptLines}};
  if (!rank.process_.open()) {
    return Status{Code::NoMemory, base::format("cannot open a pidfd of rank {}: {}", command.rank,
                                               std::strerror(errno))};
  }
  error.value().write_end.reset();
  int why = 0;
  ssize_t got = 0;
  do {
    got = read(error.value().read_end.number(), &why,
               sizeof why);  // returns at once: exec closes the pipe
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof why)) {
    return Status{
        Code::InvalidArgument,
        base::format("{} cannot be run: {}", base::quote(command.path), std::strerror(why))};
  }
  return rank;
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_{std::exchange(other.pid_, -1)},
      process_{std::move(other.process_)},
      out_{std::move(other.out_)},
      err_{std::move(other.err_)},
      end_{other.end_} {}

RankProcess::~RankProcess() {
  if (pid_ < 0) return;
  send(SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void RankProcess::send(int signal) const { kill(-pid_, signal); }

bool RankProcess::check_end() {
  if (end_) return false;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0)
    return false;
  end_ = RankEnd{info.si_code != CLD_EXITED, info.si_status};
  return true;
}

OrphanReaper::OrphanReaper() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  base::Fd read_end{ends[0]};
  pipe_.reset(ends[1]);
  process_ = fork();
  if (process_ == 0) {
    close(ends[1]);
    run_reaper(ends[0]);
  }
  if (process_ < 0) pipe_.reset();
}

OrphanReaper::~OrphanReaper() {
  if (process_ <= 0) return;
  add(kFinished);
  pipe_.reset();
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void OrphanReaper::add(pid_t group) {
  // A write of so few bytes does not block on a pipe. The launch goes on even if the reaper was
  // killed.
  if (pipe_.open()) (void)!write(pipe_.number(), &group, sizeof group);
}

}  // namespace sluice::bootstrap
