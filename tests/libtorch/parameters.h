// parameters.h - parameters without a module, and checks of their gradients.
#pragma once

#include <torch/torch.h>

#include <string>

#include "sluice/status.h"

namespace sluice::libtorch {

using Parameters = torch::OrderedDict<std::string, torch::Tensor>;

inline torch::Tensor ramp(std::initializer_list<std::int64_t> shape, double first = 1) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return (torch::arange(count, torch::kFloat) + first).view(shape);
}

inline torch::Tensor parameter(const torch::Tensor& value) {
  return value.clone().set_requires_grad(true);
}

// What zero_grad() leaves in .grad: the same tensor, zeroed (optimizers of libtorch 1.13); another
// tensor over the same memory, zeroed (modules); or an undefined tensor (both on request, and by
// default in libtorch 2.x).
enum class Clearing { Zero, ZeroDetached, ToNone };
inline constexpr Clearing kClearings[] = {Clearing::Zero, Clearing::ZeroDetached, Clearing::ToNone};

inline void clear(const Parameters& parameters, Clearing clearing) {
  for (const auto& item : parameters) {
    torch::Tensor& gradient = item.value().mutable_grad();
    if (!gradient.defined()) continue;
    if (clearing == Clearing::ZeroDetached) gradient = gradient.detach();
    if (clearing == Clearing::ToNone) {
      gradient.reset();
    } else {
      gradient.zero_();
    }
  }
}

inline bool same(const torch::Tensor& a, const torch::Tensor& b) {
  return a.defined() && b.defined() && a.scalar_type() == b.scalar_type() && torch::equal(a, b);
}

// Returns the status of the Error that `call` throws, or Ok if it does not throw.
template <class Call>
Status thrown_by(const Call& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
}

}  // namespace sluice::libtorch
