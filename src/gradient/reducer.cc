#include "gradient/reducer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "gradient/description.h"

namespace sluice::gradient {
namespace {

void require_usable(const std::vector<GradientSpec>& gradients, const GradientOptions& options) {
  for (const GradientSpec& gradient : gradients) {
    if (gradient.type == DataType::I32 || gradient.type == DataType::I64)
      base::refuse(base::format("gradient \"{}\" is of type {}; gradients must be floats",
                                gradient.name, name(gradient.type)));
  }
  const LossScaleOptions& scale = options.loss_scale;
  const bool in_range =
      scale.initial >= kSmallestScale && scale.initial <= kLargestScale && scale.growth_steps >= 1;
  if (scale.enabled && !in_range)
    base::refuse(
        base::format("loss scaling that starts at {} and doubles after {} steps is not possible; "
                     "use a scale in [{}, {}] and at least 1 step",
                     scale.initial, scale.growth_steps, kSmallestScale, kLargestScale));
  const SparseOptions& sparse = options.sparse;
  if (!(sparse.sparsity >= 0 && sparse.sparsity < 1 && sparse.chunk >= 1 &&
        sparse.dense_steps >= 0 && sparse.ramp_steps >= 0))
    base::refuse(base::format(
        "sparsity {} in chunks of {} elements, with {} dense and {} ramp steps, is not "
        "possible; use a sparsity of at least 0 and below 1, chunks of at least 1 "
        "element, and no negative number of steps",
        sparse.sparsity, sparse.chunk, sparse.dense_steps, sparse.ramp_steps));
}

// Returns rank 0's order at every rank.
std::vector<std::size_t> agreed_order(Communicator& communicator,
                                      const std::vector<std::size_t>& own) {
  std::vector<std::int64_t> numbers(own.begin(), own.end());
  communicator.broadcast(numbers).wait();
  return {numbers.begin(), numbers.end()};
}

}  // namespace

Reducer::Bucketing::Bucketing(const Reducer& owner, std::vector<std::size_t> order)
    : layout{owner.gradients_, std::move(order)},
      list{{.gradients = owner.gradients_,
            .layout = layout,
            .options = owner.options_,
            .wire = owner.wire_ != WireType::F32 ? &*owner.wire_buffer_ : nullptr,
            .packed = owner.wire_buffer_ ? &*owner.wire_buffer_ : nullptr},
           step},
      readiness{layout, list.ranges()},
      in_flight{owner.communicator_,
                step,
                {.gradients = owner.gradients_.size(),
                 .chunks = owner.sparse_.sparsity().chunks().size(),
                 .algorithm = owner.options_.algorithm}} {}

Reducer::Reducer(Communicator communicator, std::vector<GradientSpec> gradients,
                 GradientOptions options)
    : gradients_{std::move(gradients)},
      options_{std::move(options)},
      description_{describe(gradients_, options_)},
      sparse_{gradients_, options_.sparse, options_.double_buffering},
      communicator_{communicator.split(0, communicator.rank())},
      loss_scale_{options_.loss_scale},
      used_(gradients_.size(), false),
      warned_(gradients_.size(), false),
      ever_used_(gradients_.size(), false),
      counts_(static_cast<std::size_t>(communicator_.size())) {
  // The ranks compare before each one checks, so that all ranks report the same error.
  require_same(communicator_, description_);
  require_usable(gradients_, options_);
  wire_ = agreed_wire(communicator_, options_);
  std::vector<std::size_t> order = observed_order({}, gradients_.size());
  const std::size_t bytes = PoolLayout{gradients_, order}.bytes();
  // Packing in place overwrites the gradients, so a step that may be skipped needs separate memory.
  const bool separate = options_.sparse.sparsity > 0 && options_.loss_scale.enabled;
  if (wire_ != WireType::F32 || separate) wire_buffer_.emplace(communicator_, bytes, wire_);
  bucketing_ = std::make_unique<Bucketing>(*this, std::move(order));
  for (int k = 0; k < (options_.double_buffering ? 2 : 1); ++k) {
    pools_.push_back(communicator_.allocate(bytes));
    std::memset(pools_.back().data(), 0, pools_.back().bytes());
  }
  sparse_.plan();
}

WireConversion Reducer::conversion(double loss_scale) const {
  return {.wire = wire_,
          .ranks = communicator_.size(),
          .wire_scale = wire_scale_.value(),
          .loss_scale = loss_scale,
          .loss_scaled = options_.loss_scale.enabled};
}

void Reducer::begin_step(double loss_scale) {
  if (options_.double_buffering) make_buckets();
  bucketing_->in_flight.begin({.pool = pools_[current_].data(),
                               .conversion = conversion(loss_scale),
                               .timeline = timeline_,
                               .norms = sparse_.norms()},
                              bucketing_->list.buckets());
}

// Makes the buckets of the step that was planned last. REQUIRES: no bucket is in flight.
void Reducer::make_buckets() {
  if (!sparse_.possible()) return;  // the buckets never change
  if (sparse_.sparsity().sparse()) {
    bucketing_->list.set_sparse(sparse_.context());
  } else {
    bucketing_->list.set_dense();
  }
}

void Reducer::plan_next() {
  bucketing_->readiness.clear();
  sparse_.plan();
  if (options_.double_buffering) return;  // its buckets are made when they are sent
  make_buckets();
  if (sparse_.possible()) bucketing_->readiness.set_buckets(bucketing_->list.ranges());
}

void Reducer::mark_ready(std::size_t i) {
  Readiness& readiness = bucketing_->readiness;
  if (readiness.is_ready(i))
    base::refuse(
        base::format("gradient \"{}\" was marked ready twice in one step; call finish() after each "
                     "backward that sends gradients",
                     gradients_[i].name));
  const std::size_t sendable = readiness.mark(i);
  sparse_.add_decay(i, slot(i), loss_scale_.value());
  if (options_.double_buffering) return;
  InFlightStep& in_flight = bucketing_->in_flight;
  if (!in_flight.begun()) begin_step(loss_scale_.value());
  if (const std::size_t own = readiness.bucket_of(i); readiness.is_full(own))
    in_flight.set_ready(own);
  in_flight.send(sendable);
}

// Waits for the step in flight, because peers may still need this rank's part of it. If this rank
// fails, its peers get an error instead.
Reducer::~Reducer() {
  const bool fails = std::uncaught_exceptions() > exceptions_;
  if (fails || !options_.double_buffering || !bucketing_->in_flight.begun()) return;
  try {
    bucketing_->in_flight.wait();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no caller needs the result
  }
}

FinishedStep Reducer::finish() {
  try {
    FinishedStep finished = finish_step();
    plan_next();
    if (timeline_ != nullptr) timeline_->end_step();
    return finished;
  } catch (...) {
    // A later call must report this failure, not that gradients were marked twice.
    bucketing_->readiness.clear();
    throw;
  }
}

FinishedStep Reducer::finish_step() {
  clear_unmarked();
  FinishedStep finished{.empty = true};
  if (options_.double_buffering) {
    const double step_scale = loss_scale_.value();
    if (in_flight()) finished = complete_step();
    if (!observed_) reorder_slots(bucketing_->readiness.marked());
    begin_step(step_scale);
    send_rest();
    current_ = 1 - current_;
  } else {
    if (!bucketing_->in_flight.begun()) begin_step(loss_scale_.value());
    send_rest();
    finished = complete_step();
    if (!observed_) reorder_slots(bucketing_->readiness.marked());
  }
  return finished;
}

FinishedStep Reducer::flush() {
  if (!options_.double_buffering || !in_flight()) return {.empty = true};
  current_ = 1 - current_;
  return complete_step();
}

// Gradients that this rank does not have count as zero.
void Reducer::clear_unmarked() {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (!bucketing_->readiness.is_ready(i)) std::memset(slot(i), 0, bucketing_->layout.bytes_of(i));
  }
}

void Reducer::send_rest() {
  bucketing_->in_flight.send(bucketing_->list.buckets().size());
  bucketing_->in_flight.send_trailer(bucketing_->readiness.marked());
}

// Waits for the step in flight and delivers its means. `event`: the wait's name in the timeline.
void Reducer::await_step(const char* event) {
  if (decision_) return;
  InFlightStep& in_flight = bucketing_->in_flight;
  const std::int64_t begin_ns = timeline_ != nullptr ? timeline_->now_ns() : 0;
  in_flight.wait();
  if (timeline_ != nullptr) timeline_->add_wait(event, begin_ns, timeline_->now_ns());

  for (std::size_t r = 0; r < counts_.size(); ++r)
    counts_[r] = in_flight.trailer().counts(static_cast<Rank>(r));
  const StepContext& step = in_flight.step();
  decision_ = decide_overflow(counts_, step.sums, step.conversion, gradients_);
  if (decision_->finished.skipped) return;
  for (Bucket* bucket : bucketing_->list.buckets()) bucket->deliver();
}

FinishedStep Reducer::complete_step() {
  await_step("finish");
  OverflowDecision decision = std::move(*decision_);
  decision_.reset();
  const StepTrailer& trailer = bucketing_->in_flight.trailer();
  for (std::size_t i = 0; i < used_.size(); ++i) record_users(i, trailer.users(i));
  const StepContext& step = bucketing_->in_flight.step();
  const bool skipped = decision.finished.skipped;
  // If only the wire scale caused the skip, the loss scale does not change.
  if (decision.lower_loss_scale || !skipped)
    loss_scale_.update(step.conversion.loss_scale, decision.lower_loss_scale);
  if (decision.lower_wire_scale) {
    wire_scale_.lower(step.conversion.wire_scale);
  } else if (!skipped && step.conversion.wire == WireType::F16) {
    wire_scale_.update(step.conversion.wire_scale, step.largest);
  }
  sparse_.sparsity().complete(skipped, trailer.norms());
  // Chunks that arrived may sum up earlier steps in which some rank had the gradient.
  for (std::size_t i = 0; i < used_.size() && sparse_.sparsity().was_sparse(); ++i) {
    if (sparse_.sparsity().chunks().whole(i)) continue;
    used_[i] = used_[i] || (ever_used_[i] && !received(i).empty());
  }
  return std::move(decision.finished);
}

void Reducer::record_users(std::size_t i, int users) {
  used_[i] = users > 0;
  ever_used_[i] = ever_used_[i] || used_[i];
  if (users == communicator_.size() || warned_[i]) return;
  warned_[i] = true;
  if (communicator_.rank() != 0) return;
  const std::string& name = gradients_[i].name;
  base::log_warning(
      users == 0
          ? base::format(
                "in one step no rank had a gradient for \"{}\"; its parameter then does not change",
                name)
          : base::format("in one step {} of {} ranks had a gradient for \"{}\"; it counts as zero "
                         "at the others",
                         users, communicator_.size(), name));
}

// REQUIRES: nothing is in flight.
void Reducer::reorder_slots(const std::vector<std::size_t>& seen) {
  observed_ = true;
  std::vector<std::size_t> order =
      agreed_order(communicator_, observed_order(seen, gradients_.size()));
  if (order == bucketing_->layout.order()) return;
  const Pool& pool = pools_[current_];
  const std::vector<std::byte> before{pool.data(), pool.data() + pool.bytes()};
  auto changed = std::make_unique<Bucketing>(*this, std::move(order));
  const auto old = std::exchange(bucketing_, std::move(changed));
  std::memset(pool.data(), 0, pool.bytes());
  for (std::size_t i = 0; i < gradients_.size(); ++i)
    std::copy_n(before.data() + old->layout.offset(i), old->layout.bytes_of(i), slot(i));
  for (const std::size_t i : old->readiness.marked()) bucketing_->readiness.mark(i);
  ++layout_version_;
}

}  // namespace sluice::gradient
