// torch_ranks.h - ranks as threads or processes; libtorch computes with one thread in each.
#pragma once

#include <ATen/Parallel.h>

#include "tests/engine/ranks.h"

namespace sluice::libtorch {

inline void run_torch_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  engine::run_ranks(ranks, [&](Communicator& comm) {
    at::set_num_threads(1);
    body(comm);
  });
}

inline Communicator& torch_world() {
  static Communicator& communicator = []() -> Communicator& {
    at::set_num_threads(1);
    return engine::world();
  }();
  return communicator;
}

}  // namespace sluice::libtorch
