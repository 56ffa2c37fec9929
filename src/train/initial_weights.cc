#include "train/initial_weights.h"

#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <string_view>
#include <unordered_set>

namespace sluice {
namespace {

using torch::Tensor;

// What a dotted name leads to in an archive, which nests as modules do.
bool read(torch::serialize::InputArchive& archive, std::string_view name, Tensor& tensor,
          bool is_buffer) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) {
    return archive.try_read(std::string{name}, tensor, is_buffer);
  }
  torch::serialize::InputArchive part;
  return archive.try_read(std::string{name.substr(0, dot)}, part) &&
         read(part, name.substr(dot + 1), tensor, is_buffer);
}

// The tensors whose size is the number of classes.
std::unordered_set<const c10::TensorImpl*> classifier(const Model& network) {
  std::unordered_set<const c10::TensorImpl*> tensors;
  if (const auto* const last = network.modules(false).back()->as<torch::nn::Linear>()) {
    tensors = {last->weight.unsafeGetTensorImpl(), last->bias.unsafeGetTensorImpl()};
  }
  return tensors;
}

}  // namespace

Result<std::vector<std::string>> take_weights(const std::filesystem::path& path, Model& network) {
  const torch::NoGradGuard no_grad;
  torch::serialize::InputArchive archive;
  try {
    archive.load_from(path.string());
  } catch (const c10::Error& error) {
    return Status{Code::InvalidInput,
                  fmt::format("{} holds no weights that can be read: {}", path.string(),
                              error.what_without_backtrace())};
  }
  const auto head = classifier(network);
  std::vector<std::string> notes;
  const auto take = [&](const std::string& name, Tensor own, bool is_buffer) -> Status {
    Tensor stored;
    if (!read(archive, name, stored, is_buffer)) {
      return {Code::InvalidInput, fmt::format("{} has no '{}': it holds the weights of another "
                                              "network",
                                              path.string(), name)};
    }
    if (stored.sizes() == own.sizes()) {
      own.copy_(stored);
    } else if (!head.contains(own.unsafeGetTensorImpl())) {
      return {Code::InvalidInput,
              fmt::format("'{}' of {} is {}, and this network's is {}", name, path.string(),
                          c10::str(stored.sizes()), c10::str(own.sizes()))};
    } else if (notes.empty()) {
      notes.push_back(fmt::format("{} was trained for {} classes: the classifier starts afresh",
                                  path.string(), stored.size(0)));
    }
    return {};
  };
  for (const auto& item : network.named_parameters()) {
    if (Status status = take(item.key(), item.value(), false); !status.ok()) return status;
  }
  for (const auto& item : network.named_buffers()) {
    if (Status status = take(item.key(), item.value(), true); !status.ok()) return status;
  }
  return notes;
}

}  // namespace sluice
