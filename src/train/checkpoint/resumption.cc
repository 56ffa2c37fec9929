#include "train/checkpoint/resumption.h"

#include <torch/nn/modules/linear.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <cstdlib>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "base/format.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace sluice::train {
namespace {

constexpr const char* kEpoch = "epoch";
constexpr const char* kGlobalBatch = "global_batch";
constexpr const char* kSamples = "samples";
constexpr const char* kClasses = "classes";
constexpr const char* kChannels = "channels";

double noted_number(const TrainingState& state, const char* name) {
  const auto found = state.notes.find(name);
  return found == state.notes.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}

Status require_same(const TrainingState& saved, const char* name, const char* what,
                    std::size_t now) {
  const double before = noted_number(saved, name);
  if (before == static_cast<double>(now)) return {};
  return {Code::InvalidArgument,
          base::format(
              "the run was trained on data with {} {}, and this data has {}: resume it with the "
              "same data, or start a new run from its weights with --init",
              before, what, now)};
}

double stored_epoch(const TrainingState& state) { return noted_number(state, kEpoch); }

recipe::ModelInput stored_input(const TrainingState& state, const recipe::Recipe& recipe) {
  return {.classes = static_cast<int>(noted_number(state, kClasses)),
          .channels = static_cast<int>(noted_number(state, kChannels)),
          .image = recipe.image};
}

using torch::Tensor;
// Returns a tensor by its name; an undefined tensor if there is none.
using StoredTensors = std::function<Tensor(const std::string& name, bool is_buffer)>;

// Reads a tensor by its dotted name; archives are nested like modules.
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

Result<StoredTensors> stored_in(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    Result<StoredModel> stored = stored_model(path);
    if (!stored.ok()) return stored.status();
    return StoredTensors{
        [network = stored.value().network](const std::string& name, bool is_buffer) {
          const auto named = is_buffer ? network->named_buffers() : network->named_parameters();
          const Tensor* const found = named.find(name);
          return found == nullptr ? Tensor{} : *found;
        }};
  }
  auto archive = std::make_shared<torch::serialize::InputArchive>();
  try {
    archive->load_from(path.string());
  } catch (const c10::Error& error) {
    return Status{Code::InvalidInput, base::format("{} has no weights that can be read: {}",
                                                   path.string(), error.what_without_backtrace())};
  }
  return StoredTensors{[archive](const std::string& name, bool is_buffer) {
    return read(*archive, name, is_buffer);
  }};
}

// The tensors of the last layer, which have one row for each class.
std::unordered_set<const c10::TensorImpl*> classifier(const Model& network) {
  const auto last = network.modules(false).back();
  const auto* const linear = last->as<torch::nn::Linear>();
  if (linear == nullptr) return {};
  return {linear->weight.unsafeGetTensorImpl(), linear->bias.unsafeGetTensorImpl()};
}

}  // namespace

TrainingState state_at(std::int64_t step, const recipe::Recipe& recipe,
                       const recipe::EpochTable& epoch_table, const data::Data& data) {
  TrainingState state{.step = step, .seed = recipe.seed};
  for (const auto& [key, value] : recipe::settings_of(recipe)) state.settings.emplace(key, value);
  state.notes = {{kEpoch, base::format("{}", epoch_table.epoch_at(step))},
                 {kGlobalBatch, base::format("{}", epoch_table.epochs.front().global_batch)},
                 {kSamples, base::format("{}", data.train->size())},
                 {kClasses, base::format("{}", data.classes.size())},
                 {kChannels, base::format("{}", data.channels)}};
  return state;
}

Result<recipe::Recipe> resumed_recipe(const TrainingState& saved, const recipe::Recipe& now,
                                      const data::Data& data) {
  // If the recipe has no global batch, the run keeps its old one, on any number of ranks.
  recipe::Recipe recipe = now;
  auto settings = saved.settings;
  const auto global_batch = static_cast<std::int64_t>(noted_number(saved, kGlobalBatch));
  if (now.global_batch == 0 || now.global_batch == global_batch) {
    recipe.global_batch = global_batch;
    settings[kGlobalBatch] = base::format("{}", now.global_batch);
  }
  if (Status status = recipe::may_resume(settings, stored_epoch(saved), now); !status.ok())
    return status;
  if (Status status = require_same(saved, kSamples, "samples", data.train->size()); !status.ok())
    return status;
  if (Status status = require_same(saved, kClasses, "classes", data.classes.size()); !status.ok())
    return status;
  return recipe;
}

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

Result<std::vector<std::string>> load_initial_weights(const std::filesystem::path& path,
                                                      Model& network) {
  const torch::NoGradGuard no_grad;
  Result<StoredTensors> stored = stored_in(path);
  if (!stored.ok()) return stored.status();
  const auto classifier_tensors = classifier(network);
  std::vector<std::string> notes;
  const auto copy = [&](const std::string& name, Tensor own, bool is_buffer) -> Status {
    const Tensor theirs = stored.value()(name, is_buffer);
    if (!theirs.defined()) {
      return {Code::InvalidInput,
              base::format("{} has no '{}': it has the weights of another network", path.string(),
                           name)};
    }
    if (theirs.sizes() == own.sizes()) {
      own.copy_(theirs);
    } else if (!classifier_tensors.contains(own.unsafeGetTensorImpl())) {
      return {Code::InvalidInput,
              base::format("'{}' of {} has shape {}, but this network's has shape {}", name,
                           path.string(), c10::str(theirs.sizes()), c10::str(own.sizes()))};
    } else if (notes.empty()) {
      notes.push_back(
          base::format("{} was trained for {} classes: the classifier starts with new weights",
                       path.string(), theirs.size(0)));
    }
    return {};
  };
  for (const auto& item : network.named_parameters()) {
    if (Status status = copy(item.key(), item.value(), false); !status.ok()) return status;
  }
  for (const auto& item : network.named_buffers()) {
    if (Status status = copy(item.key(), item.value(), true); !status.ok()) return status;
  }
  return notes;
}

}  // namespace sluice::train
