// torch_ranks.h - ranks as threads, each of which is all that libtorch computes with.
#pragma once

#include <ATen/Parallel.h>

#include "tests/engine/in_process.h"

namespace sluice {

inline void run_torch_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  run_ranks(ranks, [&](Communicator& comm) {
    at::set_num_threads(1);
    body(comm);
  });
}

}  // namespace sluice
