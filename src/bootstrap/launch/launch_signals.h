// launch_signals.h - the signals of a launcher, as something to read.
#pragma once

#include <csignal>

#include "base/fd.h"

namespace sluice::bootstrap {

// While this lives, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGPIPE are read here
// and strike nobody, and ends of children are not lost to SIG_IGN. Those not read by then are
// dropped.
class LaunchSignals {
 public:
  LaunchSignals();
  ~LaunchSignals();
  LaunchSignals(const LaunchSignals&) = delete;
  LaunchSignals& operator=(const LaunchSignals&) = delete;

  const sigset_t& before() const { return before_; }  // the mask that held till then
  int fd() const { return fd_.number(); }
  int next() const;  // 0: none

 private:
  sigset_t before_{};
  struct sigaction child_before_ {};
  base::Fd fd_;
};

// Whether it asks a program to end.
bool asks_to_end(int signal);

}  // namespace sluice::bootstrap
