#include "bootstrap/launch/rank_process.h"

#include <fcntl.h>
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
    return Status{Code::NoMemory,
                  base::format("no pipe for a rank's output: {}", std::strerror(errno))};
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
  int trouble;  // where to write errno when the program cannot be run
};

// Between fork and exec: only what is async-signal-safe.
[[noreturn]] void become(const Child& child) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.launcher) _exit(127);  // it had ended before we asked
  const bool keeps_input = child.command.rank == 0 && isatty(STDIN_FILENO) == 0;
  const int nothing = keeps_input ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(child.out, STDOUT_FILENO);
  dup2(child.err, STDERR_FILENO);
  // Not to be pinned is slower, not wrong.
  if (!child.command.cores.empty()) (void)pin_to(child.command.cores);
  sigprocmask(SIG_SETMASK, &child.command.signals, nullptr);
  execvpe(child.command.path.c_str(), child.arguments, child.environment);
  const int why = errno;
  (void)!write(child.trouble, &why, sizeof why);
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
constexpr pid_t kDismissed = 0;

// Runs in a fork, so it keeps to what is async-signal-safe.
[[noreturn]] void guard(int pipe) {
  setpgid(0, 0);  // what a terminal sends to the launcher's group is not for the guardian
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  static std::array<pid_t, kMostGroups> groups;
  std::size_t count = 0;
  while (true) {
    pid_t group = kDismissed;
    const ssize_t got = read(pipe, &group, sizeof group);
    if (got < 0 && errno == EINTR) continue;
    if (got == static_cast<ssize_t>(sizeof group)) {
      if (group == kDismissed) _exit(0);
      if (count < kMostGroups) groups[count++] = group;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
    _exit(0);
  }
}

}  // namespace

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
  Result<Pipe> trouble = make_pipe();
  for (const auto* pipe : {&out, &err, &trouble}) {
    if (!pipe->ok()) return pipe->status();
  }
  std::vector<char*> arguments = pointers(command.arguments);
  std::vector<char*> environment = pointers(command.environment);
  const Child child{command,
                    getpid(),
                    arguments.data(),
                    environment.data(),
                    command.draws ? command.out : out.value().write_end.number(),
                    command.draws ? command.err : err.value().write_end.number(),
                    trouble.value().write_end.number()};
  const pid_t pid = fork();
  if (pid < 0) {
    return Status{Code::NoMemory, base::format("rank {} cannot be started: {}", command.rank,
                                               std::strerror(errno))};
  }
  if (pid == 0) become(child);
  setpgid(pid, pid);  // whoever of the two comes first
  RankProcess rank{
      pid, base::Fd{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))},
      LineRelay{without_blocking(std::move(out.value().read_end)), command.out, command.prefix, 0},
      LineRelay{without_blocking(std::move(err.value().read_end)), command.err, command.prefix,
                kKeptLines}};
  if (!rank.process_.open()) {
    return Status{Code::NoMemory, base::format("rank {} cannot be watched: {}", command.rank,
                                               std::strerror(errno))};
  }
  trouble.value().write_end.reset();
  int why = 0;
  ssize_t got = 0;
  do {
    got =
        read(trouble.value().read_end.number(), &why, sizeof why);  // ends at once: exec closes it
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

bool RankProcess::look_for_end() {
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
    guard(ends[0]);
  }
  if (process_ < 0) pipe_.reset();
}

OrphanReaper::~OrphanReaper() {
  if (process_ <= 0) return;
  watch(kDismissed);
  pipe_.reset();
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void OrphanReaper::watch(pid_t group) {
  // A pipe this short never blocks. A guardian that was killed is no reason to fail.
  if (pipe_.open()) (void)!write(pipe_.number(), &group, sizeof group);
}

}  // namespace sluice::bootstrap
