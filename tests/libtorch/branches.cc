#include "tests/libtorch/branches.h"

#include <gtest/gtest.h>

#include "sluice/torch/data_parallel.h"
#include "tests/libtorch/parameters.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch::equivalence {
namespace {

using torch::Tensor;

struct BranchesImpl : torch::nn::Module {
  BranchesImpl() {
    for (auto* const layer : {&all, &low, &high, &never, &seldom})
      *layer = register_module(std::to_string(children().size()), torch::nn::Linear{5, 5});
    to(torch::kDouble);
    fill(*this);
  }

  // Of the step's samples `begin` to `end`, the sum.
  Tensor loss(int step, int begin, int end) {
    const Tensor numbers = torch::arange(begin, end, torch::kDouble);
    const Tensor inputs =
        torch::sin(numbers.unsqueeze(1) * 0.7 + torch::arange(5, torch::kDouble) + step);
    const Tensor hidden = torch::tanh(all->forward(inputs));
    Tensor sum = hidden.sum() * 0.1;
    const auto take = [&](torch::nn::Linear& layer, const Tensor& chosen) {
      if (chosen.any().item<bool>())
        sum = sum + layer->forward(hidden.index({chosen})).square().sum();
    };
    take(low, numbers < kBatch / 2);
    take(high, numbers >= kBatch / 2);
    if (step % 4 == 2) take(seldom, numbers == 5);
    return sum;
  }

  torch::nn::Linear all{nullptr};
  torch::nn::Linear low{nullptr};
  torch::nn::Linear high{nullptr};
  torch::nn::Linear never{nullptr};
  torch::nn::Linear seldom{nullptr};
};
TORCH_MODULE(Branches);

// With momentum and decay a layer without work moves if its gradient is zero, and stays if it is
// undefined.
NamedTensors train(Clearing clearing, Communicator* comm, std::size_t theta) {
  Branches model;
  torch::optim::SGD optimizer{model->parameters(),
                              torch::optim::SGDOptions{0.05}.momentum(0.9).weight_decay(0.01)};
  std::optional<DataParallel> parallel;
  if (comm != nullptr) parallel.emplace(*model, *comm, GradientOptions{.theta = theta});
  const int ranks = comm == nullptr ? 1 : comm->size();
  const Rank rank = comm == nullptr ? 0 : comm->rank();
  for (int step = 0; step < kSteps; ++step) {
    clear(model->named_parameters(), clearing);
    const Tensor loss =
        model->loss(step, kBatch * rank / ranks, kBatch * (rank + 1) / ranks) / kBatch;
    (loss * ranks).backward();
    if (parallel) parallel->finish();
    optimizer.step();
  }
  return weights(*model);
}

}  // namespace

void branches_equal_one(Communicator& comm) {
  for (const Clearing clearing : kClearings) {
    const NamedTensors alone = train(clearing, nullptr, 0);
    for (const std::size_t theta : {std::size_t{1}, std::size_t{1} << 40U}) {
      EXPECT_LT(relative_distance(train(clearing, &comm, theta), alone), 1e-10)
          << comm.size() << " ranks, theta " << theta << ", clearing "
          << static_cast<int>(clearing);
    }
  }
}

}  // namespace sluice::libtorch::equivalence
