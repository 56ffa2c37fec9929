#include "tests/libtorch/training.h"

#include <cstring>

#include "sluice/torch/data_parallel.h"

namespace sluice::libtorch {
namespace {

constexpr int kClasses = 5;
constexpr int kSide = 6;

using Optimizer = torch::optim::SGD;

Optimizer optimizer_of(torch::nn::Module& module) {
  return Optimizer{module.parameters(), torch::optim::SGDOptions{0.1}.momentum(0.9)};
}

// Returns what these samples add to the mean loss over kBatch samples, times the number of ranks,
// because finish() divides by it.
torch::Tensor loss_of(const torch::Tensor& outputs, const torch::Tensor& labels, int ranks) {
  return torch::nn::functional::cross_entropy(
             outputs, labels,
             torch::nn::functional::CrossEntropyFuncOptions{}.reduction(torch::kSum)) *
         (static_cast<double>(ranks) / kBatch);
}

}  // namespace

NetworkImpl::NetworkImpl(const Setting& setting, const std::optional<Communicator>& group) {
  first = register_module("first", torch::nn::Conv2d{torch::nn::Conv2dOptions{2, 6, 3}});
  if (setting.normalise) {
    const torch::nn::BatchNormOptions options{6};
    norm = group ? torch::nn::AnyModule{SyncBatchNorm{options, *group}}
                 : torch::nn::AnyModule{torch::nn::BatchNorm2d{options}};
    register_module("norm", norm.ptr());
  }
  second = register_module("second", torch::nn::Conv2d{torch::nn::Conv2dOptions{6, 4, 3}});
  last = register_module("last", torch::nn::Linear{16, kClasses});
  to(setting.type);
  fill(*this);
}

torch::Tensor NetworkImpl::forward(torch::Tensor x) {
  x = first->forward(x);
  if (!norm.is_empty()) x = norm.forward<torch::Tensor>(x);
  x = second->forward(torch::tanh(x));
  return last->forward(torch::tanh(x).flatten(1));
}

void fill(torch::nn::Module& module, double scale) {
  const torch::NoGradGuard no_gradient;
  int number = 0;
  for (const auto& item : module.named_parameters()) {
    torch::Tensor value = item.value();
    const torch::Tensor ramp = torch::arange(value.numel(), torch::kDouble) * (1.7 + number++);
    value.copy_(torch::sin(ramp + 0.5).mul(scale).view(value.sizes()));
  }
}

Samples samples(torch::ScalarType type, int step, int begin, int end) {
  constexpr int kElements = 2 * kSide * kSide;
  const torch::Tensor numbers =
      torch::arange(begin * kElements, end * kElements, torch::kDouble) + step * 1000.0;
  return {torch::sin(numbers * 0.731).mul(2).view({end - begin, 2, kSide, kSide}).to(type),
          (torch::arange(begin, end, torch::kLong) * 3 + step) % kClasses};
}

NamedTensors weights(const torch::nn::Module& module) {
  NamedTensors all;
  for (const auto& item : module.named_parameters())
    all.emplace_back(item.key(), item.value().detach().clone());
  return all;
}

double relative_distance(const NamedTensors& ours, const NamedTensors& theirs) {
  double distance = 0;
  double norm = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const torch::Tensor their = theirs[i].second.to(torch::kDouble);
    distance += (ours[i].second.to(torch::kDouble) - their).square().sum().item<double>();
    norm += their.square().sum().item<double>();
  }
  return std::sqrt(distance / norm);
}

bool same_bits(const NamedTensors& ours, const NamedTensors& theirs) {
  return hash_of(ours) == hash_of(theirs);
}

NamedTensors train_alone(const Setting& setting) {
  Network model{setting, std::nullopt};
  Optimizer optimizer = optimizer_of(*model);
  for (int step = 0; step < kSteps; ++step) {
    const Samples batch = samples(setting.type, step, 0, kBatch);
    optimizer.zero_grad();
    loss_of(model->forward(batch.inputs), batch.labels, 1).backward();
    optimizer.step();
  }
  return weights(*model);
}

NamedTensors train(const Setting& setting, Communicator& communicator,
                   const std::function<void(const torch::nn::Module&)>& after_step) {
  const int ranks = communicator.size();
  const Rank rank = communicator.rank();
  Network model{setting, communicator.split(0, rank)};
  DataParallel parallel{*model, communicator, setting.options};
  Optimizer optimizer = optimizer_of(*model);
  for (int step = 0; step < kSteps; ++step) {
    const Samples batch =
        samples(setting.type, step, setting.begin(rank, ranks), setting.begin(rank + 1, ranks));
    clear(model->named_parameters(), setting.clearing);
    loss_of(model->forward(batch.inputs), batch.labels, ranks).backward();
    parallel.finish();
    optimizer.step();
    if (after_step) after_step(*model);
  }
  return weights(*model);
}

}  // namespace sluice::libtorch
