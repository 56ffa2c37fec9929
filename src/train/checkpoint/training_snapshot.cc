#include "train/checkpoint/training_snapshot.h"

#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "gradient/description.h"
#include "libtorch/parameters.h"
#include "sluice/torch/momentum_optimizer.h"

namespace sluice::train {
namespace {

using torch::Tensor;
using NamedDict = torch::OrderedDict<std::string, Tensor>;

constexpr const char* kParameters = "parameters/";
constexpr const char* kBuffers = "buffers/";
constexpr const char* kOptimizer = "optimizer/";
constexpr const char* kArchive = "optimizer";
constexpr const char* kResidual = "residual";

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Writes keys and values as alternating lines.
std::string join_pairs(const std::map<std::string, std::string>& pairs) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : pairs) lines.insert(lines.end(), {key, value});
  return gradient::join_lines(lines);
}

std::map<std::string, std::string> split_pairs(std::string_view text) {
  const std::vector<std::string> lines = gradient::split_lines(text);
  std::map<std::string, std::string> pairs;
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) pairs.emplace(lines[i], lines[i + 1]);
  return pairs;
}

Tensor tensor_over(const Section& section, const torch::TensorOptions& options) {
  return torch::from_blob(const_cast<std::byte*>(section.data.data()), section.shape, options);
}

// Reuses the memory of `to`.
void save_to_memory(torch::serialize::OutputArchive& archive, std::vector<std::byte>& to) {
  to.clear();
  archive.save_to([&](const void* data, std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(data);
    to.insert(to.end(), begin, begin + bytes);
    return bytes;
  });
}

torch::ScalarType scalar_type(DataType type) {
  for (const torch::ScalarType each :
       {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kInt, torch::kLong}) {
    if (libtorch::data_type(each) == type) return each;
  }
  return torch::kByte;
}

// Returns the state of one of Sluice's optimizers as an archive for load().
std::vector<std::byte> archive_of(const CheckpointPart& part) {
  torch::serialize::OutputArchive archive;
  for (const Section& section : part.sections()) {
    if (!section.name.starts_with(kOptimizer) || !section.type) continue;
    archive.write(section.name.substr(std::strlen(kOptimizer)),
                  tensor_over(section, scalar_type(*section.type)), true);
  }
  std::vector<std::byte> bytes;
  save_to_memory(archive, bytes);
  return bytes;
}

Status restore(const CheckpointPart& part, torch::optim::Optimizer& optimizer) {
  const Section* const stored = part.find(kArchive);
  const std::vector<std::byte> made =
      stored == nullptr ? archive_of(part) : std::vector<std::byte>{};
  const std::span<const std::byte> saved = stored == nullptr ? std::span{made} : stored->data;
  torch::serialize::InputArchive archive;
  archive.load_from(reinterpret_cast<const char*>(saved.data()), saved.size());
  optimizer.load(archive);
  return {};
}

Status restore(const CheckpointPart& part, const char* prefix, const NamedDict& tensors) {
  const torch::NoGradGuard no_grad;
  std::size_t stored = 0;
  for (const Section& section : part.sections()) stored += section.name.starts_with(prefix) ? 1 : 0;
  for (const auto& item : tensors) {
    const Section* const section = part.find(prefix + item.key());
    const Tensor& own = item.value();
    if (section == nullptr)
      return {Code::InvalidInput, base::format("the checkpoint has no '{}'", item.key())};
    if (section->type != libtorch::data_type(own.scalar_type()) || own.sizes() != section->shape)
      return {Code::InvalidInput,
              base::format(
                  "the checkpoint's '{}' is {} of shape {}, but this network's is {} of shape {}",
                  item.key(), section->type ? name(*section->type) : "bytes",
                  c10::str(torch::IntArrayRef{section->shape}), c10::toString(own.scalar_type()),
                  c10::str(own.sizes()))};
  }
  if (stored != tensors.size())
    return {Code::InvalidInput,
            base::format("the checkpoint has {} tensors, but this network has {}", stored,
                         tensors.size())};
  for (const auto& item : tensors) {
    Tensor own = item.value();
    const Section& section = *part.find(prefix + item.key());
    own.copy_(tensor_over(section, own.scalar_type()));
  }
  return {};
}

std::uint8_t flag(bool value) { return value ? 1 : 0; }

void add_in_flight(const gradient::MeanInFlight& mean, SectionWriter& to) {
  to.add_view<std::byte>("in_flight/pool", mean.pool);
  to.add_view<std::uint8_t>("in_flight/used", mean.used);
  to.add_view<float>("in_flight/norms", mean.norms);
  to.add_value("in_flight/wire_scale", mean.wire_scale);
  to.add_value("in_flight/loss_scale", mean.loss_scale);
  to.add_value("in_flight/largest", mean.largest);
  to.add_value("in_flight/skipped", flag(mean.decision.finished.skipped));
  to.add_value("in_flight/lower_wire_scale", flag(mean.decision.lower_wire_scale));
  to.add_value("in_flight/lower_loss_scale", flag(mean.decision.lower_loss_scale));
  to.add_text("in_flight/warning", mean.decision.finished.warning);
}

gradient::MeanInFlight mean_in_flight(SectionReader& from) {
  return {.pool = from.vector<std::byte>("in_flight/pool"),
          .used = from.vector<std::uint8_t>("in_flight/used"),
          .norms = from.vector<float>("in_flight/norms"),
          .wire_scale = from.value<float>("in_flight/wire_scale"),
          .loss_scale = from.value<double>("in_flight/loss_scale"),
          .largest = from.value<float>("in_flight/largest"),
          .decision = {
              .finished = {.skipped = from.value<std::uint8_t>("in_flight/skipped") != 0,
                           .warning = std::string{from.text("in_flight/warning")}},
              .lower_wire_scale = from.value<std::uint8_t>("in_flight/lower_wire_scale") != 0,
              .lower_loss_scale = from.value<std::uint8_t>("in_flight/lower_loss_scale") != 0}};
}

// `state` must not change until the sections have been written.
void add_common(const gradient::ReducerState& state, SectionWriter& to) {
  to.add_text("gradients/description", gradient::join_lines(state.description));
  const std::vector<std::int64_t> order(state.order.begin(), state.order.end());
  to.add_copy<std::int64_t>("gradients/order", order);
  to.add_value("gradients/layout_hash", state.layout_hash);
  to.add_value("gradients/observed", flag(state.observed));
  to.add_value("gradients/wire_scale", state.wire_scale);
  to.add_value("gradients/loss_scale", state.loss_scale);
  to.add_value("gradients/clean_steps", std::int64_t{state.clean_steps});
  to.add_view<std::uint8_t>("gradients/ever_used", state.ever_used);

  const gradient::SparsityState& sparsity = state.sparsity;
  to.add_value("sparsity/steps", sparsity.steps);
  to.add_value("sparsity/has_norms", flag(sparsity.has_norms));
  to.add_view<float>("sparsity/norms", sparsity.norms);
  to.add_view<std::uint32_t>("sparsity/ages", sparsity.ages);
  std::vector<std::uint8_t> sparse;
  std::vector<std::uint8_t> selected;
  for (const gradient::SparsityState::Planned& planned : sparsity.planned) {
    sparse.push_back(flag(planned.sparse));
    selected.insert(selected.end(), planned.selected.begin(), planned.selected.end());
  }
  to.add_copy<std::uint8_t>("sparsity/planned", sparse);
  to.add_copy<std::uint8_t>("sparsity/selected", selected);

  to.add_value("in_flight", flag(state.in_flight));
  if (state.in_flight) add_in_flight(state.mean, to);
}

Result<gradient::ReducerState> reducer_state(const CheckpointPart& common,
                                             const CheckpointPart& own) {
  SectionReader from{common};
  gradient::ReducerState state;
  state.description = gradient::split_lines(from.text("gradients/description"));
  for (const std::int64_t i : from.values<std::int64_t>("gradients/order"))
    state.order.push_back(static_cast<std::size_t>(i));
  state.layout_hash = from.value<std::uint64_t>("gradients/layout_hash");
  state.observed = from.value<std::uint8_t>("gradients/observed") != 0;
  state.wire_scale = from.value<float>("gradients/wire_scale");
  state.loss_scale = from.value<double>("gradients/loss_scale");
  state.clean_steps = static_cast<int>(from.value<std::int64_t>("gradients/clean_steps"));
  state.ever_used = from.vector<std::uint8_t>("gradients/ever_used");

  gradient::SparsityState& sparsity = state.sparsity;
  sparsity.steps = from.value<std::int64_t>("sparsity/steps");
  sparsity.has_norms = from.value<std::uint8_t>("sparsity/has_norms") != 0;
  sparsity.norms = from.vector<float>("sparsity/norms");
  sparsity.ages = from.vector<std::uint32_t>("sparsity/ages");
  std::span<const std::uint8_t> selected = from.values<std::uint8_t>("sparsity/selected");
  const std::size_t chunks = sparsity.norms.size();
  for (const std::uint8_t sparse : from.values<std::uint8_t>("sparsity/planned")) {
    if (selected.size() < chunks) break;  // the reducer refuses too few planned steps
    const auto own_part = selected.first(chunks);
    sparsity.planned.push_back(
        {.sparse = sparse != 0, .selected = {own_part.begin(), own_part.end()}});
    selected = selected.subspan(chunks);
  }

  state.in_flight = from.value<std::uint8_t>("in_flight") != 0;
  if (state.in_flight) state.mean = mean_in_flight(from);
  if (!from.status().ok()) return from.status();
  SectionReader rest{own};
  state.residual = rest.vector<float>(kResidual);
  if (!rest.status().ok()) return rest.status();
  return state;
}

}  // namespace

void TrainingSnapshot::copy(const Named& tensors, const char* prefix, std::vector<Tensor>& copies,
                            SectionWriter& to) {
  const torch::NoGradGuard no_grad;
  copies.resize(tensors.size());
  std::size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    Tensor& copy = copies[i++];
    const std::optional<DataType> type = libtorch::data_type(tensor.scalar_type());
    if (!type)
      throw Error{Status{Code::InvalidArgument,
                         base::format("'{}' is of type {}, which a checkpoint cannot store", name,
                                      c10::toString(tensor.scalar_type()))}};
    if (!copy.defined() || copy.sizes() != tensor.sizes() ||
        copy.scalar_type() != tensor.scalar_type())
      copy = torch::empty(tensor.sizes(), torch::TensorOptions{tensor.scalar_type()});
    copy.copy_(tensor);
    to.add({.name = prefix + name,
            .type = type,
            .shape = tensor.sizes().vec(),
            .data = bytes_of(copy)});
  }
}

void TrainingSnapshot::copy_optimizer(torch::optim::Optimizer& optimizer) {
  auto* const own = dynamic_cast<MomentumOptimizer*>(&optimizer);
  if (own == nullptr) {
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    save_to_memory(archive, archive_);
    common_.add_view<std::byte>(kArchive, archive_);
    return;
  }
  copy(own->state_tensors(), kOptimizer, optimizer_state_, common_);
}

void TrainingSnapshot::take(const TrainingState& state, const TrainingObjects& objects,
                            bool with_common) {
  common_.clear();
  own_.clear();
  objects.parallel.reducer().capture(reducer_);
  copy(objects.network.named_buffers().pairs(), kBuffers, buffers_, own_);
  own_.add_view<float>(kResidual, reducer_.residual);
  if (!with_common) return;

  common_.add_value("step", state.step);
  common_.add_value("seed", state.seed);
  common_.add_text("settings", join_pairs(state.settings));
  common_.add_text("notes", join_pairs(state.notes));
  common_.add_value("accuracy", state.accuracy);
  common_.add_value("best_accuracy", state.best_accuracy);
  common_.add_value("best_step", state.best_step);
  copy(objects.network.named_parameters().pairs(), kParameters, parameters_, common_);
  copy_optimizer(objects.optimizer);
  add_common(reducer_, common_);
}

Result<TrainingState> training_state(const CheckpointPart& common) {
  SectionReader from{common};
  TrainingState state;
  state.step = from.value<std::int64_t>("step");
  state.seed = from.value<std::uint64_t>("seed");
  state.settings = split_pairs(from.text("settings"));
  state.notes = split_pairs(from.text("notes"));
  state.accuracy = from.value<double>("accuracy");
  state.best_accuracy = from.value<double>("best_accuracy");
  state.best_step = from.value<std::int64_t>("best_step");
  if (!from.status().ok()) return from.status();
  return state;
}

Status restore_weights(const CheckpointPart& common, const CheckpointPart& own,
                       torch::nn::Module& network) {
  if (Status status = restore(common, kParameters, network.named_parameters()); !status.ok())
    return status;
  return restore(own, kBuffers, network.named_buffers());
}

Status restore(const CheckpointPart& common, const CheckpointPart& own,
               const TrainingObjects& objects) {
  const Result<gradient::ReducerState> reducer = reducer_state(common, own);
  if (!reducer.ok()) return reducer.status();
  try {
    objects.parallel.reducer().restore(reducer.value());
    if (Status status = restore_weights(common, own, objects.network); !status.ok()) return status;
    return restore(common, objects.optimizer);
  } catch (const Error& error) {
    return {error.code(), base::format("the checkpoint does not fit: {}", error.what())};
  } catch (const c10::Error& error) {
    return {Code::InvalidInput, base::format("the checkpoint's optimizer cannot be read: {}",
                                             error.what_without_backtrace())};
  }
}

}  // namespace sluice::train
