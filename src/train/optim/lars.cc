#include "sluice/torch/lars.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <cmath>
#include <utility>

#include "kernels/lars.h"
#include "kernels/norms.h"
#include "train/optim/move.h"

namespace sluice {
namespace {

LarsNorms flat_norms(DataType type, const LarsTensor& tensor, bool with_gradient) {
  LarsNorms norms;
  if (with_gradient) {
    lars_norms(type, {&tensor, 1}, {&norms, 1});
  } else {
    squared_l2_norms(type, tensor.weights, tensor.count, tensor.count, &norms.weights);
    norms.weights = std::sqrt(norms.weights);
  }
  return norms;
}

}  // namespace

Lars::Lars(std::vector<torch::Tensor> parameters, const LarsOptions& options)
    : MomentumOptimizer{std::move(parameters),
                        options.lr,
                        {.momentum = options.momentum,
                         .weight_decay = options.weight_decay,
                         .decay_one_dimensional = false,
                         .nesterov = options.nesterov,
                         .rate_place = options.momentum_correction ? RatePlace::Outside
                                                                   : options.rate_place}},
      eta_{options.eta},
      eps_{options.eps} {}

void Lars::set_scale(Move& move, double weights_norm, double gradient_norm) const {
  if (move.arrival.gradient_norm >= 0) gradient_norm = move.arrival.gradient_norm;
  move.scale = lars_ratio({.weights = weights_norm, .gradient = gradient_norm},
                          {.eta = eta_, .decay = weight_decay(move.parameter), .epsilon = eps_});
}

// The norms of all parameters in one go, each by one thread, so that bits do not depend on how many
// there are.
void Lars::scale(std::vector<Move>& moves) {
  at::parallel_for(0, static_cast<std::int64_t>(moves.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       Move& move = moves[static_cast<std::size_t>(i)];
                       if (!move.flat || move.parameter.dim() < 2) continue;
                       const LarsTensor tensor{move.parameter.data_ptr(), move.gradient.data_ptr(),
                                               static_cast<std::size_t>(move.parameter.numel())};
                       const bool with_gradient = move.arrival.gradient_norm < 0;
                       const LarsNorms norms = flat_norms(*move.flat, tensor, with_gradient);
                       set_scale(move, norms.weights, norms.gradient);
                     }
                   });
  scale_elsewhere(moves);
}

// What is not in the CPU's memory, or of another type: one transfer brings all norms.
void Lars::scale_elsewhere(std::vector<Move>& moves) const {
  const auto elsewhere = [](const Move& move) { return !move.flat && move.parameter.dim() > 1; };
  std::vector<torch::Tensor> tensors;
  for (const Move& move : moves) {
    if (!elsewhere(move)) continue;
    tensors.push_back(move.parameter);
    tensors.push_back(move.gradient);
  }
  if (tensors.empty()) return;
  std::vector<torch::Tensor> norms = at::_foreach_norm(tensors, 2);
  for (torch::Tensor& norm : norms) norm = norm.to(norms[0].device(), torch::kFloat64);
  const torch::Tensor all = torch::stack(norms).cpu();
  const auto* next = all.data_ptr<double>();
  for (Move& move : moves) {
    if (!elsewhere(move)) continue;
    set_scale(move, next[0], next[1]);
    next += 2;
  }
}

}  // namespace sluice
