#include "train/checkpoint/initial_weights.h"

#include <torch/nn/modules/linear.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <functional>
#include <string_view>
#include <unordered_set>

#include "base/format.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/resumption.h"

namespace sluice::train {
namespace {

using torch::Tensor;
// An undefined tensor where there is none of that name.
using Stored = std::function<Tensor(const std::string& name, bool is_buffer)>;

// What a dotted name leads to in an archive, which nests as modules do.
Tensor read(torch::serialize::InputArchive& archive, std::string_view name, bool is_buffer) {
  const std::size_t dot = name.find('.');
  Tensor tensor;
  if (dot == std::string_view::npos) {
    archive.try_read(std::string{name}, tensor, is_buffer);
    return tensor;
  }
  torch::serialize::InputArchive part;
  if (archive.try_read(std::string{name.substr(0, dot)}, part)) {
    tensor = read(part, name.substr(dot + 1), is_buffer);
  }
  return tensor;
}

Result<Stored> stored_in(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    Result<StoredModel> stored = stored_model(path);
    if (!stored.ok()) return stored.status();
    return Stored{[network = stored.value().network](const std::string& name, bool is_buffer) {
      const auto named = is_buffer ? network->named_buffers() : network->named_parameters();
      const Tensor* const found = named.find(name);
      return found == nullptr ? Tensor{} : *found;
    }};
  }
  auto archive = std::make_shared<torch::serialize::InputArchive>();
  try {
    archive->load_from(path.string());
  } catch (const c10::Error& error) {
    return Status{Code::InvalidInput, base::format("{} holds no weights that can be read: {}",
                                                   path.string(), error.what_without_backtrace())};
  }
  return Stored{[archive](const std::string& name, bool is_buffer) {
    return read(*archive, name, is_buffer);
  }};
}

// The tensors that have a row for each class.
std::unordered_set<const c10::TensorImpl*> classifier(const Model& network) {
  const auto last = network.modules(false).back();
  const auto* const linear = last->as<torch::nn::Linear>();
  if (linear == nullptr) return {};
  return {linear->weight.unsafeGetTensorImpl(), linear->bias.unsafeGetTensorImpl()};
}

}  // namespace

Result<StoredModel> stored_model(const std::filesystem::path& path) {
  std::filesystem::path checkpoint = path;
  if (std::filesystem::is_directory(path / kCheckpoints)) {
    const NewestCheckpoint newest = newest_checkpoint(path / kCheckpoints);
    if (!newest.path) {
      return Status{Code::InvalidInput,
                    base::format("{} has no checkpoint that can be used{}", path.string(),
                                 newest.refused.empty() ? "" : ": " + newest.refused.front())};
    }
    checkpoint = *newest.path;
  }
  Result<LoadedCheckpoint> loaded = load_checkpoint(checkpoint);
  if (!loaded.ok()) return loaded.status();
  const TrainingState& state = loaded.value().state();
  Result<recipe::Recipe> recipe = recipe::recipe_of(state.settings, checkpoint.string());
  if (!recipe.ok()) return recipe.status();
  Result<std::shared_ptr<Model>> network =
      make_model(recipe.value().model, {.input = stored_input(state, recipe.value())});
  if (!network.ok()) return network.status();
  Status status = loaded.value().apply_weights(*network.value());
  if (!status.ok()) return status;
  return StoredModel{.network = std::move(network).value(),
                     .recipe = std::move(recipe).value(),
                     .step = state.step,
                     .epoch = stored_epoch(state)};
}

Result<std::vector<std::string>> take_weights(const std::filesystem::path& path, Model& network) {
  const torch::NoGradGuard no_grad;
  Result<Stored> stored = stored_in(path);
  if (!stored.ok()) return stored.status();
  const auto head = classifier(network);
  std::vector<std::string> notes;
  const auto take = [&](const std::string& name, Tensor own, bool is_buffer) -> Status {
    const Tensor theirs = stored.value()(name, is_buffer);
    if (!theirs.defined()) {
      return {Code::InvalidInput,
              base::format("{} has no '{}': it holds the weights of another network", path.string(),
                           name)};
    }
    if (theirs.sizes() == own.sizes()) {
      own.copy_(theirs);
    } else if (!head.contains(own.unsafeGetTensorImpl())) {
      return {Code::InvalidInput,
              base::format("'{}' of {} is {}, and this network's is {}", name, path.string(),
                           c10::str(theirs.sizes()), c10::str(own.sizes()))};
    } else if (notes.empty()) {
      notes.push_back(base::format("{} was trained for {} classes: the classifier starts afresh",
                                   path.string(), theirs.size(0)));
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

}  // namespace sluice::train
