// ranks.h - a test's ranks: as threads of the test, or as the processes that a launcher started.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/communicator.h"

namespace sluice::engine {

inline constexpr std::chrono::seconds kTestDeadline{20};

// Runs the function once for every rank, each in a thread, and waits for all of them. A rank that
// throws fails the test. Its peers do not hang, because the rank leaves its communicator.
inline void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Communicator> communicators = Communicator::in_process(ranks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&body, own = std::move(communicators[static_cast<std::size_t>(rank)])]() mutable {
          own.set_deadline(kTestDeadline);
          try {
            body(own);
          } catch (const std::exception& error) {
            ADD_FAILURE() << "rank " << own.rank() << ": " << error.what();
          }
        });
  }
  communicators.clear();
}

// The communicator of a test program that a launcher starts as one rank of several. The process
// joins once, at the first call.
inline Communicator& world() {
  static Communicator communicator = [] {
    Communicator joined = Communicator::from_env();
    joined.set_deadline(kTestDeadline);
    return joined;
  }();
  return communicator;
}

}  // namespace sluice::engine
