// log.h - what Sluice reports while it works, and where it goes.
//
// By default warnings go to standard error, one line each; `SLUICE_LOG` changes the level. A
// program that sets a sink receives every message from then on and decides for itself.
//
// Thread-safety: all of it may be called from any thread. A sink is called by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sluice {

enum class LogLevel : std::uint8_t {
  Info,     // what was found and chosen: links, algorithms, interfaces
  Warning,  // something that probably needs the user's attention
  Off,      // a threshold only: nothing is logged
};

using LogSink = std::function<void(LogLevel level, const std::string& message)>;

// Sends messages of `threshold` and above to `sink`; a null sink restores standard error. The sink
// must not log, and must not throw.
void set_log(LogSink sink, LogLevel threshold = LogLevel::Info);

// Changes the threshold alone. It starts at Warning.
void set_log_level(LogLevel threshold);

}  // namespace sluice
