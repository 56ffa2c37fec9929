// reducer_state.cc - Reducer's capture() and restore().
#include "gradient/reducer_state.h"

#include <algorithm>

#include "base/text.h"
#include "gradient/description.h"
#include "gradient/reducer.h"

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

}  // namespace

void Reducer::capture(ReducerState& to) {
  if (!bucketing_->readiness.marked().empty())
    base::refuse(
        "a state cannot be captured between backward and finish(); capture it after finish()");
  to.in_flight = in_flight();
  if (to.in_flight) capture_in_flight(to.mean);
  to.description = description_;
  to.order = bucketing_->layout.order();
  to.layout_hash = layout_hash(description_, to.order);
  to.observed = observed_;
  to.wire_scale = wire_scale_.value();
  to.loss_scale = loss_scale_.value();
  to.clean_steps = loss_scale_.clean_steps();
  to.ever_used.assign(ever_used_.begin(), ever_used_.end());
  to.sparsity = sparse_.sparsity().state();
  to.residual.assign(sparse_.residual().begin(), sparse_.residual().end());
}

ReducerState Reducer::state() {
  ReducerState state;
  capture(state);
  return state;
}

void Reducer::capture_in_flight(MeanInFlight& to) {
  await_step("capture");
  const StepContext& step = bucketing_->in_flight.step();
  const StepTrailer& trailer = bucketing_->in_flight.trailer();
  to.decision = *decision_;
  to.pool.clear();
  if (!decision_->finished.skipped)
    to.pool.assign(step.pool, step.pool + bucketing_->layout.bytes());
  to.used.resize(gradients_.size());
  for (std::size_t i = 0; i < to.used.size(); ++i) to.used[i] = trailer.users(i) > 0 ? 1 : 0;
  to.norms.assign(trailer.norms().begin(), trailer.norms().end());
  to.wire_scale = step.conversion.wire_scale;
  to.loss_scale = step.conversion.loss_scale;
  to.largest = step.largest;
}

void Reducer::restore(const ReducerState& from) {
  if (observed_ || in_flight() || !bucketing_->readiness.marked().empty())
    base::refuse("a state cannot be restored after the first backward; restore it before");
  if (const Status same = same_as_saved(description_, from.description); !same.ok())
    throw Error{same};
  const SparseChunks& chunks = sparse_.sparsity().chunks();
  const MeanInFlight& mean = from.mean;
  const bool mean_fits =
      options_.double_buffering && mean.used.size() == size() &&
      mean.norms.size() == chunks.size() &&
      (mean.decision.finished.skipped || mean.pool.size() == bucketing_->layout.bytes());
  // The planned steps are the next step and, if there is one, the step in flight.
  const std::size_t planned = from.in_flight ? 2 : 1;
  if (!is_order(from.order, size()) || from.ever_used.size() != size() ||
      !fits(from.sparsity, planned, chunks.size()) || from.residual.size() != chunks.elements() ||
      (from.in_flight && !mean_fits))
    throw Error{Status{Code::InvalidInput, "the saved state of the gradients contradicts itself"}};
  bucketing_ = std::make_unique<Bucketing>(*this, from.order);
  ++layout_version_;
  observed_ = from.observed;
  wire_scale_.restore(from.wire_scale);
  loss_scale_.restore(from.loss_scale, from.clean_steps);
  std::copy(from.ever_used.begin(), from.ever_used.end(), ever_used_.begin());
  sparse_.sparsity().restore(from.sparsity);
  std::copy(from.residual.begin(), from.residual.end(), sparse_.residual().begin());
  if (!options_.double_buffering) {
    make_buckets();
    bucketing_->readiness.set_buckets(bucketing_->list.ranges());
  }
  if (from.in_flight) restore_in_flight(from.mean);
}

void Reducer::restore_in_flight(const MeanInFlight& from) {
  const Pool& pool = pools_[1 - current_];
  std::copy(from.pool.begin(), from.pool.end(), pool.data());
  StepContext step{.pool = pool.data(), .conversion = conversion(from.loss_scale)};
  step.conversion.wire_scale = from.wire_scale;
  step.largest = from.largest;
  StepTrailer& trailer = bucketing_->in_flight.restore(step);
  trailer.clear();
  for (std::size_t i = 0; i < from.used.size(); ++i)
    trailer.set_users(i, from.used[i] != 0 ? communicator_.size() : 0);
  std::copy(from.norms.begin(), from.norms.end(), trailer.norms().begin());
  decision_ = from.decision;
}

}  // namespace sluice::gradient
