#include "gradient/reducer_state.h"

#include <algorithm>

#include "gradient/description.h"

namespace sluice::gradient {
namespace {

bool is_order(std::vector<std::size_t> order, std::size_t gradients) {
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return order.size() == gradients;
}

bool fits(const SparsityState& sparsity, std::size_t steps, std::size_t chunks) {
  return sparsity.norms.size() == chunks && sparsity.ages.size() == chunks &&
         sparsity.planned.size() == steps &&
         std::all_of(sparsity.planned.begin(), sparsity.planned.end(),
                     [&](const auto& planned) { return planned.selected.size() == chunks; });
}

bool fits(const MeanInFlight& mean, const ReducerShape& shape) {
  return mean.used.size() == shape.gradients && mean.norms.size() == shape.chunks &&
         (mean.verdict.skipped || mean.pool.size() == shape.pool_bytes);
}

}  // namespace

Status check_state(const ReducerState& state, const ReducerShape& shape) {
  if (Status same = same_as_saved(shape.description, state.description); !same.ok()) return same;
  // The step that is planned next, and the one on its way.
  const std::size_t steps = state.in_flight ? 2 : 1;
  const bool fine =
      is_order(state.order, shape.gradients) && state.ever_used.size() == shape.gradients &&
      fits(state.sparsity, steps, shape.chunks) && state.residual.size() == shape.elements &&
      (!state.in_flight || (shape.double_buffering && fits(state.mean, shape)));
  if (fine) return {};
  return {Code::InvalidInput, "the saved state of the gradients contradicts itself"};
}

}  // namespace sluice::gradient
