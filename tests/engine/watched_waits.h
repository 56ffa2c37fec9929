// watched_waits.h - a program linked with watched_waits.cc counts its waits, and which of them a
// thread begins while it holds a lock.
#pragma once

namespace sluice::engine {

struct WatchedWaits {
  long all = 0;        // sleeps on a futex, a descriptor or a clock, and yields
  long with_lock = 0;  // of these, by a thread that held a mutex
};

// In all threads, so far. A wait for a mutex is none.
WatchedWaits watched_waits();

}  // namespace sluice::engine
