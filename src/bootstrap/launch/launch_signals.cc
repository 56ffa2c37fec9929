#include "bootstrap/launch/launch_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace sluice::bootstrap {

LaunchSignals::LaunchSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE})
    sigaddset(&taken, signal);
  pthread_sigmask(SIG_BLOCK, &taken, &before_);
  fd_.reset(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &child_before_);
}

LaunchSignals::~LaunchSignals() {
  while (next() != 0) continue;  // else they would strike now
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int LaunchSignals::next() const {
  signalfd_siginfo info{};
  return read(fd_.number(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                               : 0;
}

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace sluice::bootstrap
