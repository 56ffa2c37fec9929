// stop_signals.h - the signals that ask a training to end.
#pragma once

#include <atomic>

namespace sluice::cli {

// From now on the first SIGINT, SIGTERM or SIGHUP leaves its number there, and a second one does
// what it does to any program: ends it. One of a process.
const std::atomic<int>& stop_signals();

}  // namespace sluice::cli
