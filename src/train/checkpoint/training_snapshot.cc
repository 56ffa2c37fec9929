#include "train/checkpoint/training_snapshot.h"

#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/format.h"
#include "libtorch/parameters.h"
#include "sluice/torch/momentum_optimizer.h"
#include "train/checkpoint/reducer_sections.h"

namespace sluice::train {
namespace {

using torch::Tensor;
using NamedDict = torch::OrderedDict<std::string, Tensor>;

constexpr const char* kParameters = "parameters/";
constexpr const char* kBuffers = "buffers/";
constexpr const char* kOptimizer = "optimizer/";
constexpr const char* kArchive = "optimizer";

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Key and value by turns, each with a zero behind it.
std::string joined(const std::map<std::string, std::string>& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs) {
    for (const std::string& each : {key, value}) (text += each) += '\0';
  }
  return text;
}

std::map<std::string, std::string> parted(std::string_view text) {
  std::map<std::string, std::string> pairs;
  const auto next = [&] {
    const std::size_t end = std::min(text.find('\0'), text.size());
    std::string word{text.substr(0, end)};
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  while (!text.empty()) {
    std::string key = next();
    pairs.emplace(std::move(key), next());
  }
  return pairs;
}

Tensor tensor_over(const Section& section, const torch::TensorOptions& options) {
  return torch::from_blob(const_cast<std::byte*>(section.data.data()), section.shape, options);
}

// In memory that is reused.
void pack(torch::serialize::OutputArchive& archive, std::vector<std::byte>& to) {
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

// What an optimizer of Sluice's remembers, as load() wants it.
std::vector<std::byte> archive_of(const CheckpointPart& part) {
  torch::serialize::OutputArchive archive;
  for (const Section& section : part.sections()) {
    if (!section.name.starts_with(kOptimizer) || !section.type) continue;
    archive.write(section.name.substr(std::strlen(kOptimizer)),
                  tensor_over(section, scalar_type(*section.type)), true);
  }
  std::vector<std::byte> bytes;
  pack(archive, bytes);
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
      return {
          Code::InvalidInput,
          base::format("the checkpoint's '{}' is {} of shape {}, this network's is {} of shape {}",
                       item.key(), section->type ? name(*section->type) : "bytes",
                       c10::str(torch::IntArrayRef{section->shape}),
                       c10::toString(own.scalar_type()), c10::str(own.sizes()))};
  }
  if (stored != tensors.size())
    return {Code::InvalidInput,
            base::format("the checkpoint has {} tensors, this network {}", stored, tensors.size())};
  for (const auto& item : tensors) {
    Tensor own = item.value();
    const Section& section = *part.find(prefix + item.key());
    own.copy_(tensor_over(section, own.scalar_type()));
  }
  return {};
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
                         base::format("'{}' is of type {}, which a checkpoint cannot hold", name,
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
    pack(archive, archive_);
    common_.add_view<std::byte>(kArchive, archive_);
    return;
  }
  copy(own->state_tensors(), kOptimizer, velocities_, common_);
}

void TrainingSnapshot::take(const TrainingState& state, const TrainingObjects& objects,
                            bool with_common) {
  common_.clear();
  own_.clear();
  objects.parallel.reducer().capture(reducer_);
  copy(objects.network.named_buffers().pairs(), kBuffers, buffers_, own_);
  add_own(reducer_, own_);
  if (!with_common) return;

  common_.add_value("step", state.step);
  common_.add_value("seed", state.seed);
  common_.add_text("settings", joined(state.settings));
  common_.add_text("notes", joined(state.notes));
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
  state.settings = parted(from.text("settings"));
  state.notes = parted(from.text("notes"));
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
