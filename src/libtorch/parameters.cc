#include "libtorch/parameters.h"

#include <xxhash.h>

#include <cstring>
#include <unordered_set>

#include "base/format.h"
#include "base/text.h"
#include "engine/internal_collectives.h"
#include "gradient/description.h"
#include "sluice/status.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

// Returns the strides as text, for ranks to compare: they must not add up gradients of different
// strides. Leaves out dimensions of one element, whose stride does not matter.
std::string strides_of(const Tensor& parameter) {
  if (parameter.is_contiguous() || !parameter.is_non_overlapping_and_dense()) return "";
  std::vector<std::int64_t> strides;
  for (std::int64_t i = 0; i < parameter.dim(); ++i) {
    if (parameter.size(i) > 1) strides.push_back(parameter.stride(i));
  }
  return base::format("{}", base::join(strides, ", "));
}

void broadcast(const Tensor& tensor, Communicator& communicator) {
  const Tensor flat = tensor.contiguous();
  // As bytes: collectives do not have all types of torch.
  communicator.broadcast({flat.data_ptr(), flat.nbytes(), DataType::U8}).wait();
  if (communicator.rank() != 0 && !flat.is_same(tensor)) tensor.copy_(flat);
}

bool has_bytes(const Tensor& tensor) {
  return tensor.layout() == torch::kStrided && tensor.device().is_cpu();
}

void require_same_shapes(const NamedTensors& tensors, Communicator& communicator) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : tensors)
    lines.push_back(c10::str("'", name, "' of ", tensor.scalar_type(), " ", tensor.sizes()));
  const std::optional<gradient::Difference> found =
      gradient::difference_between_ranks(communicator, lines);
  if (!found) return;
  throw Error{Status{Code::Mismatch,
                     base::format("parameters and buffers: rank 0 has {} where rank {} has {}; all "
                                  "ranks must have the same model",
                                  found->expected, found->rank, found->theirs)}};
}

}  // namespace

std::optional<DataType> data_type(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat:
      return DataType::F32;
    case torch::kDouble:
      return DataType::F64;
    case torch::kHalf:
      return DataType::F16;
    case torch::kBFloat16:
      return DataType::BF16;
    case torch::kInt:
      return DataType::I32;
    case torch::kLong:
      return DataType::I64;
    default:
      return std::nullopt;
  }
}

NamedTensors unique_tensors(const torch::OrderedDict<std::string, Tensor>& named) {
  NamedTensors tensors;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : named) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second)
      tensors.emplace_back(item.key(), item.value());
  }
  return tensors;
}

bool is_trained(const Tensor& parameter) {
  return parameter.requires_grad() && parameter.numel() > 0;
}

NamedTensors trained_parameters(NamedTensors parameters) {
  std::erase_if(parameters, [](const auto& named) { return !is_trained(named.second); });
  if (parameters.empty())
    base::refuse("no parameter requires a gradient; set requires_grad on those to train");
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.is_leaf())
      base::refuse(
          base::format("parameter '{}' is computed from other tensors; pass those instead", name));
    if (!parameter.device().is_cpu() || parameter.layout() != torch::kStrided)
      base::refuse(
          base::format("parameter '{}' is not a dense tensor on the CPU; move it there", name));
    const std::optional<DataType> type = data_type(parameter.scalar_type());
    if (!type || *type == DataType::I32 || *type == DataType::I64)
      base::refuse(
          base::format("parameter '{}' has type {}; only f32, f64, f16 and bf16 can be averaged",
                       name, c10::toString(parameter.scalar_type())));
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

std::uint64_t hash_of(const NamedTensors& tensors) {
  std::uint64_t hash = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::string shape = c10::str(name, tensor.scalar_type(), tensor.sizes());
    hash = XXH3_64bits_withSeed(shape.data(), shape.size(), hash);
    const Tensor flat = tensor.contiguous();
    hash = XXH3_64bits_withSeed(flat.data_ptr(), flat.nbytes(), hash);
  }
  return hash;
}

bool equalise(NamedTensors tensors, Communicator& communicator) {
  const torch::NoGradGuard no_gradient;
  std::erase_if(tensors, [](const auto& named) { return !has_bytes(named.second); });
  if (engine::same_everywhere(communicator, hash_of(tensors))) return false;
  require_same_shapes(tensors, communicator);
  for (const auto& [name, tensor] : tensors) broadcast(tensor, communicator);
  return true;
}

}  // namespace sluice::libtorch
