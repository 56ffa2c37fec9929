// process_status.h - what the system says of another process of this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace sluice::transport {

struct ProcessStatus {
  char state = ' ';           // T: stopped by a signal, t: by a debugger
  std::uint64_t started = 0;  // in clock ticks since the system started
};

// nullopt: there is no such process.
std::optional<ProcessStatus> status_of_process(pid_t pid);

}  // namespace sluice::transport
