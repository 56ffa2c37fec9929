#include "cli/train/stop_signals.h"

#include <csignal>
#include <initializer_list>

namespace sluice::cli {
namespace {

std::atomic<int> stop{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler writes it");

void take(int signal) { stop.store(signal); }

}  // namespace

const std::atomic<int>& stop_signals() {
  struct sigaction action {};
  action.sa_handler = take;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  return stop;
}

}  // namespace sluice::cli
