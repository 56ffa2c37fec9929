// Compares training with sparse gradients, from model to optimizer, with a naive implementation.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sluice/torch/data_parallel.h"
#include "sluice/torch/lars.h"
#include "sluice/torch/sgd.h"
#include "tests/libtorch/torch_ranks.h"

namespace sluice::train {
namespace {

constexpr int kSteps = 25;
constexpr double kRate = 0.05;
constexpr double kMomentum = 0.9;
constexpr double kDecay = 0.01;
constexpr std::size_t kChunk = 16;

torch::nn::Sequential tanh_network() {
  torch::nn::Sequential model{torch::nn::Linear{7, 11}, torch::nn::Tanh{},
                              torch::nn::Linear{11, 5}};
  const torch::NoGradGuard no_grad;
  double seed = 0;
  for (torch::Tensor& weights : model->parameters())
    weights.copy_(
        torch::arange(weights.numel()).mul(0.37).add(++seed).sin().mul(0.4).view_as(weights));
  return model;
}

// Returns the loss of one rank in a step.
torch::Tensor loss(torch::nn::Sequential& model, Rank rank, int step) {
  const torch::Tensor inputs =
      torch::arange(6 * 7).mul(0.13).add(rank * 2.1 + step * 0.71).cos().view({6, 7});
  const torch::Tensor targets =
      torch::arange(6 * 5).mul(0.29).add(rank * 1.3 + step * 0.17).sin().view({6, 5});
  return torch::mse_loss(model->forward(inputs), targets);
}

// The update rule of an optimizer.
struct Rule {
  const char* name;
  bool nesterov = false;
  double decay = 0;
  LearningRateMode mode = LearningRateMode::Outside;
  double eta = 0;  // 0: not LARS
};
constexpr Rule kRules[] = {
    {"momentum"},
    {"nesterov", true},
    {"decay", false, kDecay},
    {"nesterov, decay, the rate folded in", true, kDecay, LearningRateMode::Folded},
    {"lars", false, kDecay, LearningRateMode::Folded, 0.05},
    {"lars, nesterov, the rate outside", true, kDecay, LearningRateMode::Outside, 0.05},
};
constexpr double kEpsilon = 1e-9;

// A training of all ranks, with a residual for each and one set of weights. With double buffering,
// a mean updates the weights one step later, and norms select chunks one step later.
class Reference {
 public:
  Reference(int ranks, double sparsity, const Rule& rule, bool double_buffering)
      : ranks_{ranks},
        sparsity_{sparsity},
        rule_{rule},
        double_buffering_{double_buffering},
        model_{tanh_network()} {
    for (const torch::Tensor& weights : model_->parameters()) {
      velocities_.push_back(torch::zeros_like(weights).flatten());
      latest_.push_back(velocities_.back().clone());
      steps_.push_back(velocities_.back().clone());
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      residuals_.emplace_back();
      for (const torch::Tensor& velocity : velocities_)
        residuals_.back().push_back(torch::zeros_like(velocity));
    }
    for (std::size_t p = 0; p < velocities_.size(); ++p) {
      const auto count = static_cast<std::size_t>(velocities_[p].numel());
      for (std::size_t first = 0; is_matrix(p) && first < count; first += kChunk)
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
    std::vector<Arrived> arrived = send(gradients);
    if (double_buffering_) arrived.swap(pending_);
    if (!arrived.empty()) apply(arrived);
  }

  void flush() {
    const torch::NoGradGuard no_grad;
    if (!pending_.empty()) apply(pending_);
  }

  torch::nn::Sequential& model() { return model_; }

 private:
  struct Chunk {
    std::size_t parameter;
    std::size_t first;
    std::size_t count;
  };
  // The mean gradient of a parameter, by element.
  struct Arrived {
    torch::Tensor mean;
    torch::Tensor steps;  // number of steps in the mean; 0: it did not arrive
    bool decayed = false;
  };

  bool is_matrix(std::size_t p) const { return model_->parameters()[p].dim() >= 2; }
  // LARS does not decay biases.
  double decay(std::size_t p) const { return is_matrix(p) || rule_.eta == 0 ? rule_.decay : 0; }

  std::vector<Arrived> send(const std::vector<std::vector<torch::Tensor>>& gradients) {
    const std::size_t delay = double_buffering_ ? 2 : 1;
    const bool dense = norms_.size() < delay;
    std::vector<Arrived> arrived;
    for (std::size_t p = 0; p < velocities_.size(); ++p) {
      const bool whole = dense || !is_matrix(p);
      Arrived& own = arrived.emplace_back();
      own.mean = torch::zeros_like(velocities_[p]);
      own.steps = torch::full_like(velocities_[p], whole ? 1 : 0);
      own.decayed = !whole;
      for (std::size_t r = 0; whole && r < gradients.size(); ++r)
        own.mean += gradients[r][p] / ranks_;
    }
    std::vector<double> norms(chunks_.size(), 0);
    const std::vector<bool> sent =
        dense ? std::vector<bool>(chunks_.size(), true) : selection(known_norms(delay));
    for (std::size_t c = 0; !dense && c < chunks_.size(); ++c) {
      const auto [p, first, count] = chunks_[c];
      const auto part = [&, first = first, count = count](const torch::Tensor& of) {
        return of.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count));
      };
      part(steps_[p]) += 1;
      for (std::size_t r = 0; r < gradients.size(); ++r) {
        torch::Tensor residual = part(residuals_[r][p]);
        residual += part(gradients[r][p]) + decay(p) * part(model_->parameters()[p].view({-1}));
        if (!sent[c]) {
          norms[c] += residual.abs().mean().item<double>();
          continue;
        }
        part(arrived[p].mean) += residual / ranks_;
        residual.zero_();
      }
      if (!sent[c]) continue;
      part(arrived[p].steps).copy_(part(steps_[p]));
      part(steps_[p]).zero_();
    }
    norms_.push_back(norms);
    sent_ = sent;
    return arrived;
  }

  // Returns the newest known norms. If a chunk was sent after its norm was computed, the norm is 0.
  std::vector<double> known_norms(std::size_t delay) const {
    std::vector<double> norms = norms_[norms_.size() - delay];
    for (std::size_t c = 0; double_buffering_ && c < norms.size(); ++c) {
      if (sent_[c]) norms[c] = 0;
    }
    return norms;
  }

  void apply(const std::vector<Arrived>& arrived) {
    for (std::size_t p = 0; p < arrived.size(); ++p) {
      const Arrived& own = arrived[p];
      const torch::Tensor has_arrived = own.steps > 0;
      torch::Tensor weights = model_->parameters()[p].view({-1});
      torch::Tensor change = own.decayed ? own.mean : own.mean + decay(p) * weights;
      if (rule_.eta > 0 && is_matrix(p)) {
        latest_[p] = torch::where(has_arrived, own.mean / own.steps, latest_[p]);
        const double length = weights.norm().item<double>();
        change = change * rule_.eta * length /
                 (latest_[p].norm().item<double>() + decay(p) * length + kEpsilon);
      }
      const bool folded = rule_.mode == LearningRateMode::Folded;
      if (folded) change = change * kRate;
      const torch::Tensor velocity = kMomentum * velocities_[p] + change;
      torch::Tensor update = rule_.nesterov ? change + kMomentum * velocity : velocity;
      if (!folded) update = update * kRate;
      velocities_[p] = torch::where(has_arrived, velocity, velocities_[p]);
      weights.copy_(torch::where(has_arrived, weights - update, weights));
    }
  }

  std::vector<bool> selection(const std::vector<double>& norms) const {
    std::vector<bool> sent(chunks_.size());
    std::vector<std::size_t> order(chunks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return norms[a] > norms[b]; });
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
  Rule rule_;
  bool double_buffering_;
  torch::nn::Sequential model_;
  std::vector<torch::Tensor> velocities_;
  std::vector<torch::Tensor> latest_;  // the latest received mean, divided by its steps
  std::vector<torch::Tensor> steps_;   // number of steps in the residual, by element
  std::vector<std::vector<torch::Tensor>> residuals_;  // by rank and parameter
  std::vector<Chunk> chunks_;
  std::vector<std::vector<double>> norms_;  // by step and chunk
  std::vector<bool> sent_;                  // by chunk, in the last step
  std::vector<Arrived> pending_;
};

std::unique_ptr<MomentumOptimizer> optimizer_of(const torch::nn::Sequential& model,
                                                const Rule& rule) {
  if (rule.eta > 0)
    return std::make_unique<Lars>(model->parameters(), LarsOptions{.lr = kRate,
                                                                   .momentum = kMomentum,
                                                                   .nesterov = rule.nesterov,
                                                                   .weight_decay = rule.decay,
                                                                   .eta = rule.eta,
                                                                   .eps = kEpsilon,
                                                                   .rate_place = rule.mode});
  return std::make_unique<Sgd>(
      model->parameters(),
      SgdOptions{.lr = kRate,
                 .momentum = kMomentum,
                 .nesterov = rule.nesterov,
                 .weight_decay = rule.decay,
                 .rate_place = rule.mode,
                 .momentum_correction = rule.mode == LearningRateMode::Outside});
}

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

void expect_reference_weights(int ranks, double sparsity, const Rule& rule, bool double_buffering) {
  Reference reference{ranks, sparsity, rule, double_buffering};
  for (int step = 0; step < kSteps; ++step) reference.step(step);
  reference.flush();
  libtorch::run_torch_ranks(ranks, [&](Communicator& comm) {
    torch::nn::Sequential model = tanh_network();
    DataParallel parallel{*model,
                          comm,
                          {.theta = 64,
                           .double_buffering = double_buffering,
                           .sparse = {.sparsity = sparsity, .chunk = kChunk}}};
    const std::unique_ptr<MomentumOptimizer> optimizer = optimizer_of(model, rule);
    parallel.attach(*optimizer);
    for (int step = 0; step < kSteps; ++step) {
      optimizer->zero_grad(step % 2 == 0);
      loss(model, comm.rank(), step).backward();
      parallel.finish();
      optimizer->step();
    }
    if (!parallel.flush().empty) optimizer->step();
    EXPECT_LT(distance(model, reference.model()), 1e-5)
        << rule.name << (double_buffering ? ", double buffering, " : ", ") << ranks << " ranks, "
        << sparsity;
  });
}

TEST(SparseTraining, MatchesANaiveImplementation) {
  for (const Rule& rule : kRules) {
    for (const bool double_buffering : {false, true}) {
      for (const int ranks : {1, 2, 3}) {
        for (const double sparsity : {0.3, 0.6, 0.85})
          expect_reference_weights(ranks, sparsity, rule, double_buffering);
      }
    }
  }
}

TEST(SparseTraining, NeedsAnAttachedOptimizer) {
  libtorch::run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Sequential model = tanh_network();
    DataParallel parallel{*model, comm, {.sparse = {.sparsity = 0.5}}};
    loss(model, comm.rank(), 0).backward();
    try {
      parallel.finish();
      FAIL() << "finish() succeeded without an optimizer";
    } catch (const Error& error) {
      EXPECT_NE(std::string{error.what()}.find("sluice::Sgd or sluice::Lars"), std::string::npos);
    }
  });
}

TEST(SparseTraining, EndsWithTheSameWeightsAtAllRanks) {
  for (const bool double_buffering : {false, true}) {
    for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
      libtorch::run_torch_ranks(3, [&](Communicator& comm) {
        torch::nn::Sequential model = tanh_network();
        DataParallel parallel{*model,
                              comm,
                              {.theta = 64,
                               .wire = wire,
                               .force_wire = true,
                               .double_buffering = double_buffering,
                               .sparse = {.sparsity = 0.7, .chunk = kChunk, .dense_steps = 2}}};
        Lars optimizer{model->parameters(), {.lr = kRate, .weight_decay = kDecay, .eta = 0.1}};
        parallel.attach(optimizer);
        const double before = loss(model, comm.rank(), 0).item<double>();
        for (int step = 0; step < 4 * kSteps; ++step) {
          optimizer.zero_grad();
          loss(model, comm.rank(), 0).backward();
          parallel.finish();
          optimizer.step();
          for (const torch::Tensor& weights : model->parameters()) {
            torch::Tensor others = weights.detach().clone();
            comm.broadcast(
                    {others.data_ptr(), static_cast<std::size_t>(others.numel()), DataType::F32})
                .wait();
            ASSERT_TRUE(torch::equal(others, weights)) << "step " << step;
          }
        }
        EXPECT_LT(loss(model, comm.rank(), 0).item<double>(), before);
      });
    }
  }
}

}  // namespace
}  // namespace sluice::train
