// parameters.h - the parameters of a model: selects those that are trained, describes them for
// gradient/, and gives all ranks the same initial values.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradient/layout.h"
#include "sluice/communicator.h"
#include "sluice/types.h"

namespace sluice::libtorch {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// The DataType of a libtorch type; none if collectives do not support it.
std::optional<DataType> data_type(torch::ScalarType type);

// Drops repeated tensors; the first name stays.
NamedTensors unique_tensors(const torch::OrderedDict<std::string, torch::Tensor>& named);

// Whether backward() computes a gradient for it.
bool is_trained(const torch::Tensor& parameter);

// Returns the parameters that are trained. Throws Error if one of them cannot be averaged, or if
// there is none.
NamedTensors trained_parameters(NamedTensors parameters);

// Whether it has two or more dimensions, and no gaps between its elements in memory.
bool may_be_sparse(const torch::Tensor& parameter);
// Whether a sparse step may send only a part of its gradient.
bool has_chunks(const torch::Tensor& parameter);

// REQUIRES: `parameters` is a result of trained_parameters().
std::vector<gradient::GradientSpec> gradient_specs(const NamedTensors& parameters);

// Returns a tensor like `parameter` over `memory`, which it does not own.
torch::Tensor tensor_over(std::byte* memory, const torch::Tensor& parameter);

// Returns a hash of names, shapes, types and values. Strides do not change it.
std::uint64_t hash_of(const NamedTensors& tensors);

// If the ranks' hashes differ, copies rank 0's values to all ranks and returns true. Skips tensors
// that are not dense or not on the CPU. Every rank must call it. Throws Error, as Work::wait()
// does, and (Mismatch, at every rank) if names, types or shapes differ.
bool equalise(NamedTensors tensors, Communicator& communicator);

}  // namespace sluice::libtorch
