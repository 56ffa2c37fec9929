#include "tests/libtorch/equivalence.h"

#include <gtest/gtest.h>

#include "sluice/algorithms.h"
#include "sluice/torch/data_parallel.h"
#include "tests/libtorch/parameters.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch::equivalence {
namespace {

constexpr std::size_t kThetas[] = {1, 900, std::size_t{1} << 40U};

// Sums over parts of a batch are rounded in another order than sums over the whole batch; ten steps
// multiply the difference by about a hundred.
double tolerance(torch::ScalarType type) { return type == torch::kDouble ? 1e-10 : 1e-5; }

using torch::Tensor;

struct BranchesImpl : torch::nn::Module {
  BranchesImpl() {
    for (auto* const layer : {&all, &low, &high, &never, &sometimes})
      *layer = register_module(std::to_string(children().size()), torch::nn::Linear{5, 5});
    to(torch::kDouble);
    fill(*this);
  }

  // Returns the loss of the step's samples `begin` to `end`, summed.
  Tensor loss(int step, int begin, int end) {
    const Tensor numbers = torch::arange(begin, end, torch::kDouble);
    const Tensor inputs =
        torch::sin(numbers.unsqueeze(1) * 0.7 + torch::arange(5, torch::kDouble) + step);
    const Tensor hidden = torch::tanh(all->forward(inputs));
    Tensor sum = hidden.sum() * 0.1;
    const auto add_branch = [&](torch::nn::Linear& layer, const Tensor& samples) {
      if (samples.any().item<bool>())
        sum = sum + layer->forward(hidden.index({samples})).square().sum();
    };
    add_branch(low, numbers < kBatch / 2);
    add_branch(high, numbers >= kBatch / 2);
    if (step % 4 == 2) add_branch(sometimes, numbers == 5);
    return sum;
  }

  torch::nn::Linear all{nullptr};
  torch::nn::Linear low{nullptr};
  torch::nn::Linear high{nullptr};
  torch::nn::Linear never{nullptr};
  torch::nn::Linear sometimes{nullptr};
};
TORCH_MODULE(Branches);

// With momentum and weight decay, a layer that is not used changes if its gradient is zero, and
// does not change if its gradient is undefined.
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

void ranks_equal_one(Communicator& comm, bool normalise) {
  for (const torch::ScalarType type : {torch::kDouble, torch::kFloat}) {
    Setting setting{.type = type, .normalise = normalise};
    const NamedTensors alone = train_alone(setting);
    for (std::size_t i = 0; i < std::size(kThetas); ++i) {
      const std::size_t theta = kThetas[i];
      setting.options.theta = theta;
      setting.clearing = kClearings[i];
      EXPECT_LT(relative_distance(train(setting, comm), alone), tolerance(type))
          << comm.size() << " ranks, theta " << theta << ", " << c10::toString(type);
    }
  }
}

void parts_may_differ_in_size(Communicator& comm) {
  for (const bool normalise : {false, true}) {
    const Setting setting{.normalise = normalise, .begin = [](Rank rank, int ranks) {
                            if (rank <= 1) return 0;
                            return rank == ranks ? kBatch : 5 * (rank - 1);
                          }};
    EXPECT_LT(relative_distance(train(setting, comm), train_alone(setting)), 1e-10)
        << (normalise ? "normalised" : "plain");
  }
}

void direct_has_the_same_bits_whatever_theta(Communicator& comm) {
  Setting setting{.type = torch::kFloat, .options = {.algorithm = "direct"}};
  std::optional<NamedTensors> before;
  for (const std::size_t theta : kThetas) {
    setting.options.theta = theta;
    const NamedTensors now = train(setting, comm);
    EXPECT_TRUE(!before || same_bits(now, *before)) << "theta " << theta;
    before = now;
  }
}

void all_ranks_have_the_same_bits(Communicator& comm) {
  for (const Algorithm& algorithm : built_in_algorithms()) {
    if (!algorithm.supports(Collective::AllReduce)) continue;
    for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
      for (const bool double_buffering : {false, true}) {
        const Setting setting{.type = torch::kFloat,
                              .normalise = true,
                              .options = {.theta = 900,
                                          .wire = wire,
                                          .force_wire = true,
                                          .double_buffering = double_buffering,
                                          .algorithm = std::string{algorithm.name}}};
        train(setting, comm, [&](const torch::nn::Module& module) {
          EXPECT_FALSE(equalise(weights(module), comm))
              << algorithm.name << ", wire " << static_cast<int>(wire)
              << (double_buffering ? ", double buffering" : "");
        });
      }
    }
  }
}

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
