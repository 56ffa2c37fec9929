// reducer_state.h - all that the next steps of a reducer depend on besides the gradients.
//
// A reducer that is restored from it goes on with the same bits. All but the residual is the same
// at all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradient/sparse/sparsity.h"
#include "gradient/verdict.h"
#include "sluice/status.h"

namespace sluice::gradient {

// With double buffering: the step that finish() has only started. Its mean has arrived, but nothing
// has followed from it yet.
struct MeanInFlight {
  std::vector<std::byte> pool;     // the means, as they lie in a pool; empty where it is skipped
  std::vector<std::uint8_t> used;  // by gradient: whether some rank had one
  std::vector<float> norms;        // summed over the ranks, by chunk
  float wire_scale = 1;            // that it carried
  double loss_scale = 1;
  float largest = 0;  // of the sums that were narrowed to f16
  Verdict verdict;
};

struct ReducerState {
  std::vector<std::string> description;  // of gradients and options
  std::vector<std::size_t> order;        // of slots
  std::uint64_t layout_hash = 0;         // of order, gradients and options
  bool observed = false;                 // the order is that of rank 0's backward
  float wire_scale = 1;
  double loss_scale = 1;
  int clean_steps = 0;                  // since the loss scale is what it is
  std::vector<std::uint8_t> ever_used;  // by gradient: some rank had one in some step
  SparsityState sparsity;
  bool in_flight = false;
  MeanInFlight mean;            // where in_flight
  std::vector<float> residual;  // what this rank holds back, chunk by chunk
};

// What a state must fit.
struct ReducerShape {
  const std::vector<std::string>& description;
  std::size_t gradients = 0;
  std::size_t pool_bytes = 0;
  std::size_t chunks = 0;
  std::size_t elements = 0;  // of all chunks
  bool double_buffering = false;
};

// An error (InvalidInput) where it was captured with other gradients or options, with the first
// difference, or where its numbers cannot be.
Status check_state(const ReducerState& state, const ReducerShape& shape);

}  // namespace sluice::gradient
