// reducer_state.h - everything besides the gradients that the next steps of a Reducer depend on.
//
// A Reducer that is restored from it continues with the same bits. Only the residual differs
// between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradient/sparse/sparsity.h"
#include "gradient/wire/wire.h"

namespace sluice::gradient {

// With double buffering: the step that finish() only started. Its mean has arrived, but scales and
// sparsity are not updated yet.
struct MeanInFlight {
  std::vector<std::byte> pool;     // the means, in the layout of the pool; empty if it is skipped
  std::vector<std::uint8_t> used;  // by gradient: 1 if some rank had it
  std::vector<float> norms;        // summed over the ranks, by gradient chunk
  float wire_scale = 1;            // that this step used
  double loss_scale = 1;           // likewise
  float largest = 0;               // largest magnitude of the sums in f16
  OverflowDecision decision;
};

struct ReducerState {
  std::vector<std::string> description;  // of gradients and options
  std::vector<std::size_t> order;        // of slots
  std::uint64_t layout_hash = 0;         // of order, gradients and options
  bool observed = false;                 // the order is that of rank 0's backward pass
  float wire_scale = 1;
  double loss_scale = 1;
  int clean_steps = 0;                  // since the loss scale changed
  std::vector<std::uint8_t> ever_used;  // by gradient: 1 if some rank had it in some step
  SparsityState sparsity;
  bool in_flight = false;
  MeanInFlight mean;            // if in_flight
  std::vector<float> residual;  // of this rank, chunk by chunk
};

}  // namespace sluice::gradient
