#include "sluice/torch/lars.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "kernels/norms.h"
#include "kernels/optimizer.h"
#include "libtorch/optim/update.h"

namespace sluice {
namespace {

double squared_norm(DataType type, const void* from, std::size_t count) {
  double squared = 0;
  if (count > 0) kernels::squared_l2_norms(type, from, count, count, &squared);
  return squared;
}

}  // namespace

struct Lars::Brought {
  struct Part {
    std::size_t first;
    double squared;  // norm, of what it brought for one step
  };

  void note(const GradientPart& part, double squared) {
    squared /= static_cast<double>(part.steps) * part.steps;
    const auto place = std::lower_bound(
        parts.begin(), parts.end(), part.first,
        [](const Part& candidate, std::size_t first) { return candidate.first < first; });
    if (place != parts.end() && place->first == part.first) {
      place->squared = squared;
    } else {
      parts.insert(place, {part.first, squared});
    }
  }

  double squared() const {
    double sum = 0;
    for (const Part& part : parts) sum += part.squared;
    return sum;
  }

  std::vector<Part> parts;  // by first
};

Lars::Lars(std::vector<torch::Tensor> parameters, const LarsOptions& options)
    : MomentumOptimizer{std::move(parameters),
                        options.lr,
                        {.momentum = options.momentum,
                         .weight_decay = options.weight_decay,
                         .decay_one_dimensional = false,
                         .nesterov = options.nesterov,
                         .rate_place = options.momentum_correction ? LearningRateMode::Outside
                                                                   : options.rate_place}},
      eta_{options.eta},
      eps_{options.eps} {}

Lars::~Lars() = default;

void Lars::set_scale(Move& move, double squared_weights, double squared_gradient) const {
  move.scale = kernels::lars_ratio(
      {.weights = std::sqrt(squared_weights), .gradient = std::sqrt(squared_gradient)},
      {.eta = eta_, .decay = weight_decay(move.parameter), .epsilon = eps_});
}

// The norms of all parameters in one go, each by one thread, so that bits do not depend on how many
// there are.
void Lars::scale(std::vector<Move>& moves) {
  brought_.resize(velocities().size());
  const auto scale_flat = [&](Move& move) {
    const DataType type = *move.flat;
    const auto* const gradient = static_cast<const std::byte*>(move.gradient.data_ptr());
    const auto count = static_cast<std::size_t>(move.parameter.numel());
    Brought& brought = brought_[move.index];
    if (move.arrival.whole) brought.parts.clear();
    for (const GradientPart& part : move.arrival.parts) {
      brought.note(part, squared_norm(type, gradient + part.first * size_of(type), part.count));
    }
    set_scale(move, squared_norm(type, move.parameter.data_ptr(), count),
              move.arrival.whole ? squared_norm(type, gradient, count) : brought.squared());
  };
  at::parallel_for(0, static_cast<std::int64_t>(moves.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       Move& move = moves[static_cast<std::size_t>(i)];
                       if (move.flat && move.parameter.dim() > 1) scale_flat(move);
                     }
                   });
  scale_elsewhere(moves);
}

// What is not in the CPU's memory, or of another type: one transfer brings all norms.
void Lars::scale_elsewhere(std::vector<Move>& moves) {
  const auto elsewhere = [](const Move& move) { return !move.flat && move.parameter.dim() > 1; };
  std::vector<torch::Tensor> tensors;
  for (const Move& move : moves) {
    if (!elsewhere(move)) continue;
    tensors.push_back(move.parameter);
    if (move.arrival.whole) tensors.push_back(move.gradient);
    for (const GradientPart& part : move.arrival.parts)
      tensors.push_back(libtorch::memory_of(move.gradient, part));
  }
  if (tensors.empty()) return;
  std::vector<torch::Tensor> norms = at::_foreach_norm(tensors, 2);
  for (torch::Tensor& norm : norms) norm = norm.to(norms[0].device(), torch::kFloat64);
  const torch::Tensor squares = torch::stack(norms).cpu().square();
  const auto* next = squares.data_ptr<double>();
  for (Move& move : moves) {
    if (!elsewhere(move)) continue;
    const double weights = *next++;
    Brought& brought = brought_[move.index];
    const double gradient = move.arrival.whole ? *next++ : 0;
    if (move.arrival.whole) brought.parts.clear();
    for (const GradientPart& part : move.arrival.parts) brought.note(part, *next++);
    set_scale(move, weights, move.arrival.whole ? gradient : brought.squared());
  }
}

MomentumOptimizer::Memory Lars::memory() const {
  Memory memory = MomentumOptimizer::memory();
  for (std::size_t i = 0; i < brought_.size(); ++i) {
    const auto count = static_cast<std::int64_t>(brought_[i].parts.size());
    if (count == 0) continue;
    torch::Tensor parts = torch::empty({count, 2}, torch::kFloat64);
    auto* row = parts.data_ptr<double>();
    for (const Brought::Part& part : brought_[i].parts) {
      *row++ = static_cast<double>(part.first);
      *row++ = part.squared;
    }
    memory.emplace_back(base::format("brought_{}", i), parts);
  }
  return memory;
}

void Lars::load(torch::serialize::InputArchive& archive) {
  MomentumOptimizer::load(archive);
  brought_.assign(velocities().size(), {});
  for (std::size_t i = 0; i < brought_.size(); ++i) {
    torch::Tensor parts;
    if (!archive.try_read(base::format("brought_{}", i), parts, true)) continue;
    const auto* row = parts.data_ptr<double>();
    for (std::int64_t n = 0; n < parts.size(0); ++n, row += 2) {
      brought_[i].parts.push_back({static_cast<std::size_t>(row[0]), row[1]});
    }
  }
}

}  // namespace sluice
