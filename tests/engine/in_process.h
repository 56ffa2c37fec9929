// in_process.h - runs the same function as every rank, each a thread, and waits for all.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "sluice/communicator.h"

namespace sluice::engine {

inline constexpr std::chrono::seconds kTestDeadline{20};

// A rank that throws fails the test; its peers are released by its leaving.
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

}  // namespace sluice::engine
