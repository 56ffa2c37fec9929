// timing.h - how long an all-reduce takes, by this rank's clock.
#pragma once

#include <chrono>

#include "sluice/communicator.h"
#include "transport/wait.h"

namespace sluice::engine {

// Of one, when `repeats` follow each other after a barrier. Every rank must call it.
inline double seconds_of(Communicator& communicator, float* data, std::size_t count,
                         const CollectiveOptions& options, int repeats) {
  communicator.barrier();
  const auto begin = transport::Clock::now();
  for (int i = 0; i < repeats; ++i) communicator.all_reduce(data, count, options).wait();
  return std::chrono::duration<double>(transport::Clock::now() - begin).count() / repeats;
}

}  // namespace sluice::engine
