#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

namespace sluice {
namespace {

struct Log {
  std::mutex mutex;
  LogSink sink;  // null: standard error
  LogLevel threshold = LogLevel::Warning;
  bool set_by_program = false;
};

Log& the_log() {
  static Log log;
  return log;
}

void write(LogLevel level, const std::string& message) {
  Log& log = the_log();
  const std::lock_guard lock{log.mutex};
  if (level < log.threshold) return;
  if (log.sink) {
    log.sink(level, message);
  } else {
    // One call for each line, so that lines of several ranks do not mix.
    std::fprintf(
        stderr, "sluice: %s%s\n", level == LogLevel::Warning ? "warning: " : "",
        message.c_str());  // NOLINT(cert-err33-c): there is no other place to report an error
  }
}

std::optional<LogLevel> level_named(std::string_view name) {
  if (name == "info" || name == "stderr") return LogLevel::Info;
  if (name == "warning") return LogLevel::Warning;
  if (name == "off") return LogLevel::Off;
  return std::nullopt;
}

}  // namespace

void set_log(LogSink sink, LogLevel threshold) {
  Log& log = the_log();
  const std::lock_guard lock{log.mutex};
  log.threshold = sink ? threshold : LogLevel::Warning;
  log.sink = std::move(sink);
  log.set_by_program = true;
}

void set_log_level(LogLevel threshold) {
  Log& log = the_log();
  const std::lock_guard lock{log.mutex};
  log.threshold = threshold;
  log.set_by_program = true;
}

namespace base {

void log_info(const std::string& message) { write(LogLevel::Info, message); }
void log_warning(const std::string& message) { write(LogLevel::Warning, message); }

bool set_log_level_from(std::string_view value) {
  const std::optional<LogLevel> threshold = level_named(value);
  if (!threshold) return false;
  Log& log = the_log();
  const std::lock_guard lock{log.mutex};
  if (!log.set_by_program) log.threshold = *threshold;
  return true;
}

}  // namespace base
}  // namespace sluice
