#include "train/report/gradient_traffic.h"

#include <algorithm>

#include "gradient/wire.h"
#include "sluice/algorithms.h"
#include "train/loop/make_optimizer.h"

namespace sluice::train {
namespace {

// Of a buffer that is all-reduced, at this rank.
double sent_share(const Communicator& communicator, std::size_t count,
                  const std::string& asked_for) {
  if (communicator.size() == 1) return 0;
  const std::string_view name =
      communicator.algorithm_for(Collective::AllReduce, count, {.algorithm = asked_for});
  const Result<const Algorithm*> algorithm = find_algorithm(name);
  if (!algorithm.ok()) return 0;
  const Result<Shape> shape = complete_shape(*algorithm.value(), {.ranks = communicator.size()});
  return shape.ok() ? algorithm.value()->sent(shape.value(), communicator.rank()).value() : 0;
}

// As if each step were sent at the sparsity that its place in the ramp has.
double sparse_steps(const SparseOptions& sparse, std::int64_t first, std::int64_t last) {
  double steps = 0;  // whole steps that are not sent
  for (std::int64_t step = std::max(first, sparse.dense_steps); step < last; ++step) {
    const auto into = static_cast<double>(step - sparse.dense_steps);
    steps += into >= static_cast<double>(sparse.ramp_steps)
                 ? 1
                 : into / static_cast<double>(sparse.ramp_steps);
  }
  return steps * sparse.sparsity;
}

}  // namespace

double gradient_bytes_sent(const recipe::Recipe& recipe, const recipe::EpochTable& plan,
                           const Model& network, Communicator& communicator, std::int64_t first,
                           std::int64_t last) {
  const GradientOptions options = gradient_options(recipe, plan);
  const bool narrow = gradient::agreed_wire(communicator, options) != WireType::F32;
  double vectors = 0;  // elements that are always sent
  double others = 0;
  for (const torch::Tensor& parameter : network.parameters())
    (parameter.dim() < 2 ? vectors : others) += static_cast<double>(parameter.numel());
  const auto steps = static_cast<double>(last - first);
  const double held_back = recipe.sparsity > 0 ? sparse_steps(options.sparse, first, last) : 0;
  const double width = narrow ? 2 : 4;
  const double bytes = width * (vectors * steps + others * (steps - held_back));
  const double step_bytes = width * (vectors + others);
  const double bucket = options.double_buffering
                            ? step_bytes
                            : std::min(step_bytes, static_cast<double>(options.theta));
  return bytes *
         sent_share(communicator, static_cast<std::size_t>(bucket / width), options.algorithm);
}

}  // namespace sluice::train
