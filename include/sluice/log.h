// log.h - the messages that Sluice logs, and where they go.
//
// By default, warnings go to standard error, one line each. SLUICE_LOG sets another level: info,
// warning or off. A program can send the messages elsewhere with set_log().
//
// Thread-safety: any thread may call these functions. A sink is called by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sluice/version.h"

namespace sluice {

enum class LogLevel : std::uint8_t {
  Info,     // the links found, and the algorithms and interfaces chosen
  Warning,  // the user should probably do something
  Off,      // a threshold only: nothing is logged
};

using LogSink = std::function<void(LogLevel level, const std::string& message)>;

// Sends messages of `threshold` and above to `sink` from now on. A null sink restores standard
// error and the threshold Warning. Waits for a running call of the old sink. The sink must not call
// the log functions and must not throw.
SLUICE_API void set_log(LogSink sink, LogLevel threshold = LogLevel::Info);

// Changes the threshold alone. Once a program has called this or set_log(), SLUICE_LOG is ignored.
SLUICE_API void set_log_level(LogLevel threshold);

}  // namespace sluice
