// Sparse gradients from the model to the optimizer, against the same written down naively.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "sluice/torch/data_parallel.h"
#include "sluice/torch/lars.h"
#include "sluice/torch/sgd.h"
#include "tests/torch/torch_ranks.h"

namespace sluice {
namespace {

constexpr int kSteps = 25;
constexpr double kRate = 0.05;
constexpr double kMomentum = 0.9;
constexpr double kDecay = 0.01;
constexpr std::size_t kChunk = 16;

torch::nn::Sequential network() {
  torch::nn::Sequential model{torch::nn::Linear{7, 11}, torch::nn::Tanh{},
                              torch::nn::Linear{11, 5}};
  const torch::NoGradGuard no_grad;
  double seed = 0;
  for (torch::Tensor& weights : model->parameters())
    weights.copy_(
        torch::arange(weights.numel()).mul(0.37).add(++seed).sin().mul(0.4).view_as(weights));
  return model;
}

// Of one rank's share in a step.
torch::Tensor loss(torch::nn::Sequential& model, Rank rank, int step) {
  const torch::Tensor inputs =
      torch::arange(6 * 7).mul(0.13).add(rank * 2.1 + step * 0.71).cos().view({6, 7});
  const torch::Tensor targets =
      torch::arange(6 * 5).mul(0.29).add(rank * 1.3 + step * 0.17).sin().view({6, 5});
  return torch::mse_loss(model->forward(inputs), targets);
}

// All ranks' training in one place: what each holds back, and one set of weights.
class Reference {
 public:
  Reference(int ranks, double sparsity) : ranks_{ranks}, sparsity_{sparsity}, model_{network()} {
    for (const torch::Tensor& weights : model_->parameters())
      velocities_.push_back(torch::zeros_like(weights).flatten());
    for (Rank rank = 0; rank < ranks; ++rank) {
      residuals_.emplace_back();
      for (const torch::Tensor& velocity : velocities_)
        residuals_.back().push_back(torch::zeros_like(velocity));
    }
    for (std::size_t p = 0; p < velocities_.size(); ++p) {
      const bool whole = model_->parameters()[p].dim() < 2;
      const auto count = static_cast<std::size_t>(velocities_[p].numel());
      for (std::size_t first = 0; !whole && first < count; first += kChunk)
        chunks_.push_back({p, first, std::min(kChunk, count - first)});
    }
  }

  void step(int step) {
    std::vector<std::vector<torch::Tensor>> gradients;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      model_->zero_grad();
      loss(model_, rank, step).backward();
      gradients.emplace_back();
      for (const torch::Tensor& weights : model_->parameters())
        gradients.back().push_back(weights.grad().detach().clone().flatten());
    }
    const torch::NoGradGuard no_grad;
    auto parameters = model_->parameters();
    const std::vector<bool> sent = selection();
    std::vector<torch::Tensor> means;
    for (const torch::Tensor& velocity : velocities_) means.push_back(torch::zeros_like(velocity));
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      torch::Tensor weights = parameters[p].flatten();
      if (parameters[p].dim() >= 2 && !norms_.empty()) continue;  // by chunks, below
      for (const auto& own : gradients) means[p] += (own[p] + kDecay * weights) / ranks_;
      move(weights, velocities_[p], means[p]);
      parameters[p].copy_(weights.view_as(parameters[p]));
    }
    std::vector<double> norms(chunks_.size(), 0);
    for (std::size_t c = 0; c < chunks_.size() && !norms_.empty(); ++c) {
      const auto [p, first, count] = chunks_[c];
      const auto part = [&, first = first, count = count](const torch::Tensor& of) {
        return of.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
      };
      torch::Tensor weights = part(parameters[p].view({-1}));
      torch::Tensor mean = torch::zeros_like(weights);
      for (std::size_t r = 0; r < gradients.size(); ++r) {
        torch::Tensor held = part(residuals_[r][p]);
        held += part(gradients[r][p]) + kDecay * weights;
        if (!sent[c]) {
          norms[c] += held.abs().mean().item<double>();
          continue;
        }
        mean += held / ranks_;
        held.zero_();
      }
      if (sent[c]) {
        torch::Tensor velocity = part(velocities_[p]);
        move(weights, velocity, mean);
      }
    }
    norms_ = norms;
  }

  torch::nn::Sequential& model() { return model_; }

 private:
  struct Chunk {
    std::size_t parameter;
    std::size_t first;
    std::size_t count;
  };

  static void move(torch::Tensor& weights, torch::Tensor& velocity, const torch::Tensor& mean) {
    velocity.mul_(kMomentum).add_(mean);
    weights.sub_(kRate * velocity);
  }

  std::vector<bool> selection() const {
    std::vector<bool> sent(chunks_.size(), norms_.empty());
    if (norms_.empty()) return sent;
    std::vector<std::size_t> order(chunks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return norms_[a] > norms_[b]; });
    double left = 0;
    for (const Chunk& chunk : chunks_) left += static_cast<double>(chunk.count);
    const double allowed = sparsity_ * left;
    for (const std::size_t c : order) {
      if (left <= allowed) break;
      sent[c] = true;
      left -= static_cast<double>(chunks_[c].count);
    }
    return sent;
  }

  int ranks_;
  double sparsity_;
  torch::nn::Sequential model_;
  std::vector<torch::Tensor> velocities_;
  std::vector<std::vector<torch::Tensor>> residuals_;  // by rank and parameter
  std::vector<Chunk> chunks_;
  std::vector<double> norms_;
};

double distance(const torch::nn::Sequential& ours, const torch::nn::Sequential& theirs) {
  double squares = 0;
  double norm = 0;
  for (std::size_t p = 0; p < ours->parameters().size(); ++p) {
    const torch::Tensor other = theirs->parameters()[p].detach().to(torch::kDouble);
    squares +=
        (ours->parameters()[p].detach().to(torch::kDouble) - other).square().sum().item<double>();
    norm += other.square().sum().item<double>();
  }
  return std::sqrt(squares / norm);
}

TEST(SparseTraining, IsWhatTheRulesSay) {
  for (const int ranks : {1, 2, 3}) {
    for (const double sparsity : {0.3, 0.6, 0.85}) {
      Reference reference{ranks, sparsity};
      for (int step = 0; step < kSteps; ++step) reference.step(step);
      run_torch_ranks(ranks, [&](Communicator& comm) {
        torch::nn::Sequential model = network();
        DataParallel parallel{
            *model, comm, {.theta = 64, .sparse = {.sparsity = sparsity, .chunk = kChunk}}};
        Sgd optimizer{model->parameters(),
                      {.lr = kRate, .momentum = kMomentum, .weight_decay = kDecay}};
        optimizer.follow(parallel);
        for (int step = 0; step < kSteps; ++step) {
          optimizer.zero_grad(step % 2 == 0);
          loss(model, comm.rank(), step).backward();
          parallel.finish();
          optimizer.step();
        }
        EXPECT_LT(distance(model, reference.model()), 1e-5) << ranks << " ranks, " << sparsity;
      });
    }
  }
}

TEST(SparseTraining, NeedsAnOptimizerThatFollows) {
  run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Sequential model = network();
    DataParallel parallel{*model, comm, {.sparse = {.sparsity = 0.5}}};
    loss(model, comm.rank(), 0).backward();
    try {
      parallel.finish();
      FAIL() << "it went on without";
    } catch (const Error& error) {
      EXPECT_NE(std::string{error.what()}.find("sluice::Sgd or sluice::Lars"), std::string::npos);
    }
  });
}

TEST(SparseTraining, EndsWithTheSameWeightsEverywhere) {
  for (const bool double_buffering : {false, true}) {
    for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
      run_torch_ranks(3, [&](Communicator& comm) {
        torch::nn::Sequential model = network();
        DataParallel parallel{*model,
                              comm,
                              {.theta = 64,
                               .wire = wire,
                               .force_wire = true,
                               .double_buffering = double_buffering,
                               .sparse = {.sparsity = 0.7, .chunk = kChunk, .dense_steps = 2}}};
        Lars optimizer{model->parameters(), {.lr = kRate, .weight_decay = kDecay, .eta = 0.1}};
        optimizer.follow(parallel);
        const double before = loss(model, comm.rank(), 0).item<double>();
        for (int step = 0; step < 4 * kSteps; ++step) {
          optimizer.zero_grad();
          loss(model, comm.rank(), 0).backward();
          parallel.finish();
          optimizer.step();
          for (const torch::Tensor& weights : model->parameters()) {
            torch::Tensor others = weights.detach().clone();
            comm.broadcast(others.data_ptr(), static_cast<std::size_t>(others.numel())).wait();
            ASSERT_TRUE(torch::equal(others, weights)) << "step " << step;
          }
        }
        EXPECT_LT(loss(model, comm.rank(), 0).item<double>(), before);
      });
    }
  }
}

}  // namespace
}  // namespace sluice
