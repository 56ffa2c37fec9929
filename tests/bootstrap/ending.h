// ending.h - checks that processes have ended which the test did not start itself.
#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/shell.h"

namespace sluice::bootstrap {

// The process is gone, or it is a zombie that nobody has reaped yet.
inline bool ended(pid_t pid) {
  if (kill(pid, 0) != 0) return true;
  const std::string status = cli::read_all("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t after_name = status.rfind(')');
  return after_name != std::string::npos && status.size() > after_name + 2 &&
         status[after_name + 2] == 'Z';
}

// Waits up to ten seconds.
inline bool all_end(const std::vector<pid_t>& pids) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  for (const pid_t pid : pids) {
    while (!ended(pid)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }
  return true;
}

}  // namespace sluice::bootstrap
