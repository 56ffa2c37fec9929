#include "libtorch/trained_parameters.h"

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "base/format.h"
#include "base/text.h"
#include "libtorch/scalar_type.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

// Ranks whose elements lie differently must not add them up. A dimension of one element has no
// stride that matters.
std::string strides_of(const Tensor& parameter) {
  if (parameter.is_contiguous() || !parameter.is_non_overlapping_and_dense()) return "";
  std::vector<std::int64_t> strides;
  for (std::int64_t i = 0; i < parameter.dim(); ++i) {
    if (parameter.size(i) > 1) strides.push_back(parameter.stride(i));
  }
  return base::format("{}", base::join(strides, ", "));
}

}  // namespace

NamedTensors unique_tensors(const torch::OrderedDict<std::string, Tensor>& named) {
  NamedTensors tensors;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : named) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second)
      tensors.emplace_back(item.key(), item.value());
  }
  return tensors;
}

bool takes_part(const Tensor& parameter) {
  return parameter.requires_grad() && parameter.numel() > 0;
}

NamedTensors trained_parameters(NamedTensors parameters) {
  std::erase_if(parameters, [](const auto& named) { return !takes_part(named.second); });
  if (parameters.empty())
    base::refuse("no parameter requires a gradient: there is nothing to train");
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.is_leaf())
      base::refuse(
          base::format("parameter '{}' is computed from others; give those instead", name));
    if (!parameter.device().is_cpu() || parameter.layout() != torch::kStrided)
      base::refuse(base::format("parameter '{}' is not a dense tensor on the CPU", name));
    const std::optional<DataType> type = data_type(parameter.scalar_type());
    if (!type || *type == DataType::I32 || *type == DataType::I64)
      base::refuse(
          base::format("parameter '{}' is of type {}; f32, f64, f16 and bf16 can be averaged", name,
                       c10::toString(parameter.scalar_type())));
  }
  return parameters;
}

bool may_be_sparse(const Tensor& parameter) {
  return parameter.dim() > 1 && parameter.is_non_overlapping_and_dense();
}

bool has_chunks(const Tensor& parameter) {
  return parameter.scalar_type() == torch::kFloat && may_be_sparse(parameter);
}

std::vector<gradient::GradientSpec> gradient_specs(const NamedTensors& parameters) {
  std::vector<gradient::GradientSpec> gradients;
  for (const auto& [name, parameter] : parameters) {
    gradients.push_back({.name = name,
                         .count = static_cast<std::size_t>(parameter.numel()),
                         .type = *data_type(parameter.scalar_type()),
                         .may_be_sparse = may_be_sparse(parameter),
                         .strides = strides_of(parameter)});
  }
  return gradients;
}

Tensor tensor_over(std::byte* memory, const Tensor& parameter) {
  const auto options = torch::TensorOptions{parameter.scalar_type()};
  if (!parameter.is_non_overlapping_and_dense())
    return torch::from_blob(memory, parameter.sizes(), options);
  return torch::from_blob(memory, parameter.sizes(), parameter.strides(), options);
}

}  // namespace sluice::libtorch
