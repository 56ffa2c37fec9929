#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace sluice {
namespace {

struct Sink {
  std::mutex mutex;
  std::function<void(const std::string&)> hear;
  bool set = false;  // by the user
};

Sink& sink() {
  static Sink only;
  return only;
}

}  // namespace

void set_log(std::function<void(const std::string&)> hear) {
  const std::lock_guard lock{sink().mutex};
  sink().hear = std::move(hear);
  sink().set = true;
}

namespace base {

void log_to_stderr() {
  const std::lock_guard lock{sink().mutex};
  if (sink().hear || sink().set) return;
  sink().hear = [](const std::string& sentence) {
    std::fprintf(stderr, "sluice: %s\n", sentence.c_str());  // NOLINT: one write a line
  };
}

void log(const std::string& sentence) {
  const std::lock_guard lock{sink().mutex};
  if (sink().hear) sink().hear(sentence);
}

}  // namespace base

}  // namespace sluice
