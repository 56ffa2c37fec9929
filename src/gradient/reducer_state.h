// reducer_state.h - everything that the next steps of a Reducer depend on besides the gradients.
//
// A Reducer that is restored from it continues with the same bits. All of it but the residual is
// the same at all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradient/sparse/sparsity.h"
#include "gradient/wire/wire.h"

namespace sluice::gradient {

// Double buffering: the step that finish() only started. Its mean has arrived, but scales and
// sparsity are not updated yet.
struct MeanInFlight {
  std::vector<std::byte> pool;     // the means, in the layout of the pool; empty if it is skipped
  std::vector<std::uint8_t> used;  // by gradient: some rank had one
  std::vector<float> norms;        // summed over the ranks, by gradient chunk
  float wire_scale = 1;            // of this step
  double loss_scale = 1;
  float largest = 0;  // magnitude of the sums in f16
  OverflowDecision decision;
};

struct ReducerState {
  std::vector<std::string> description;  // of gradients and options
  std::vector<std::size_t> order;        // of slots
  std::uint64_t layout_hash = 0;         // of order, gradients and options
  bool observed = false;                 // the order is that of rank 0's backward
  float wire_scale = 1;
  double loss_scale = 1;
  int clean_steps = 0;                  // since the loss scale changed
  std::vector<std::uint8_t> ever_used;  // by gradient: some rank had one in some step
  SparsityState sparsity;
  bool in_flight = false;
  MeanInFlight mean;            // if in_flight
  std::vector<float> residual;  // of this rank, chunk by chunk
};

}  // namespace sluice::gradient
