// trained_parameters.h - which tensors of a model are trained, and what is told of them to
// gradient/.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <string>
#include <vector>

#include "gradient/layout.h"
#include "libtorch/weights.h"

namespace sluice::libtorch {

// Without those that are shared: the first name stands.
NamedTensors unique_tensors(const torch::OrderedDict<std::string, torch::Tensor>& named);

// Whether it has a gradient, as things stand.
bool takes_part(const torch::Tensor& parameter);

// Those that take part. Throws Error where one cannot be averaged, or there is none.
NamedTensors trained_parameters(NamedTensors parameters);

// A matrix or more, whose elements lie in its memory one after the other.
bool may_be_sparse(const torch::Tensor& parameter);
// Whether a sparse step may send only some of it.
bool has_chunks(const torch::Tensor& parameter);

// REQUIRES: trained_parameters() let them pass.
std::vector<gradient::GradientSpec> gradient_specs(const NamedTensors& parameters);

// A tensor like `parameter` over `memory`, which it does not own.
torch::Tensor tensor_over(std::byte* memory, const torch::Tensor& parameter);

}  // namespace sluice::libtorch
