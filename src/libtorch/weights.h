// weights.h - the same values at all ranks, to begin with.
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/communicator.h"

namespace sluice::libtorch {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Of names, shapes, types and values, whatever the strides.
std::uint64_t hash_of(const NamedTensors& tensors);

// Where ranks' hashes differ, rank 0's values go to all; returns whether they did. Tensors that are
// not dense and on the CPU are left as they are. Every rank must call it. Throws Error, as
// Work::wait() does, and (Mismatch, at every rank) where names, types or shapes differ.
bool equalise(NamedTensors tensors, Communicator& communicator);

}  // namespace sluice::libtorch
