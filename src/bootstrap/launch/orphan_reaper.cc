#include "bootstrap/launch/orphan_reaper.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace sluice::bootstrap {
namespace {

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
