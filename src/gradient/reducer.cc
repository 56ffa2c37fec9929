// reducer.cc - two pools with double buffering, else one; `current_` is where slots are.
//
// Without double buffering a bucket leaves as soon as it may, and finish() waits for all. With it,
// finish() waits for the step before and only then sends: never are two steps on their way, so one
// Flight does for both pools. The weights of a gradient may then change while it is on its way, so
// decay is added to it when it is marked.
//
// A step is over in two strides: settle() waits for it and brings its means home, complete() draws
// the consequences. Between the two nothing is on its way, and a state can be captured whose run
// goes on as if it had not been.
#include "gradient/reducer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "gradient/bucket_list.h"
#include "gradient/description.h"
#include "gradient/in_flight_step.h"
#include "gradient/layout.h"
#include "gradient/sparse/sparse_gradients.h"
#include "gradient/verdict.h"
#include "gradient/wire/wire.h"

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
        base::format("loss scaling from {} on, doubled after {} steps; the scale must be in "
                     "[{}, {}], the steps at least 1",
                     scale.initial, scale.growth_steps, kSmallestScale, kLargestScale));
  const SparseOptions& sparse = options.sparse;
  if (!(sparse.sparsity >= 0 && sparse.sparsity < 1 && sparse.chunk >= 1 &&
        sparse.dense_steps >= 0 && sparse.ramp_steps >= 0))
    base::refuse(base::format(
        "sparsity {} in chunks of {} after {} dense and {} ramp steps; sparsity must be "
        "at least 0 and below 1, a chunk at least 1 element, steps not negative",
        sparse.sparsity, sparse.chunk, sparse.dense_steps, sparse.ramp_steps));
}

// Rank 0's, at every rank.
std::vector<std::size_t> agreed_order(Communicator& communicator,
                                      const std::vector<std::size_t>& own) {
  std::vector<std::int64_t> numbers(own.begin(), own.end());
  communicator.broadcast(numbers.data(), numbers.size(), {.type = DataType::I64}).wait();
  return {numbers.begin(), numbers.end()};
}

}  // namespace

class Reducer::Impl {
 public:
  Impl(Communicator& communicator, std::vector<GradientSpec> gradients, GradientOptions options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::size_t size() const { return gradients_.size(); }
  std::byte* slot(std::size_t i) { return pools_[current_].data() + laid_->layout.offset(i); }
  std::uint64_t layout_version() const { return layout_version_; }
  double loss_scale() const { return loss_scale_.value(); }
  bool used(std::size_t i) const { return used_[i]; }
  SparseGradients& held() { return held_; }
  void set_timeline(Timeline* timeline) { timeline_ = timeline; }
  void capture(ReducerState& to);
  void restore(const ReducerState& from);

  void mark_ready(std::size_t i);
  FinishedStep finish();
  FinishedStep flush();

 private:
  // All that follows from the order of slots.
  struct Laid {
    Laid(const Impl& owner, std::vector<std::size_t> order)
        : layout{owner.gradients_, std::move(order)},
          list{{.gradients = owner.gradients_,
                .layout = layout,
                .options = owner.options_,
                .wire = owner.wire_ != WireType::F32 ? &*owner.wire_buffer_ : nullptr,
                .apart = owner.wire_buffer_ ? &*owner.wire_buffer_ : nullptr},
               step},
          readiness{layout, list.ranges()},
          flight{owner.communicator_,
                 step,
                 {.gradients = owner.gradients_.size(),
                  .chunks = owner.held_.sparsity().chunks().size(),
                  .algorithm = owner.options_.algorithm}} {}
    PoolLayout layout;
    StepContext step;
    BucketList list;
    Readiness readiness;
    InFlightStep flight;
  };

  FinishedStep finish_step();
  void begin_step(double loss_scale);
  void clear_unmarked();
  void send_rest();
  bool in_flight() const { return laid_->flight.begun() || settled_.has_value(); }
  void settle(const char* waiting);
  FinishedStep complete();
  WireConversion passage(double loss_scale) const;
  void capture_in_flight(MeanInFlight& to);
  void make_buckets();
  void plan_next();
  void note_users(std::size_t i, int users);
  void note_held_back();
  void lay_as_observed(const std::vector<std::size_t>& seen);

  std::vector<GradientSpec> gradients_;
  GradientOptions options_;
  std::vector<std::string> description_;
  SparseGradients held_;
  // Pools and handles go before the errands, which are in here.
  std::unique_ptr<Laid> laid_;
  Communicator communicator_;
  WireType wire_ = WireType::F32;
  std::optional<WireBuffer> wire_buffer_;
  std::vector<Pool> pools_;
  std::size_t current_ = 0;
  std::uint64_t layout_version_ = 1;
  bool observed_ = false;  // the order is rank 0's
  LossScale loss_scale_;
  WireScale wire_scale_;
  std::vector<bool> used_;
  std::vector<bool> told_;       // that not all ranks had it
  std::vector<bool> ever_used_;  // in some step
  std::vector<Faults> faults_;   // by rank
  std::optional<Verdict> settled_;
  Timeline* timeline_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

Reducer::Impl::Impl(Communicator& communicator, std::vector<GradientSpec> gradients,
                    GradientOptions options)
    : gradients_{std::move(gradients)},
      options_{std::move(options)},
      description_{describe(gradients_, options_)},
      held_{gradients_, options_.sparse, options_.double_buffering},
      communicator_{communicator.split(0, communicator.rank())},
      loss_scale_{options_.loss_scale},
      used_(gradients_.size(), false),
      told_(gradients_.size(), false),
      ever_used_(gradients_.size(), false),
      faults_(static_cast<std::size_t>(communicator_.size())) {
  // Compared before it is judged, so that all ranks find the same fault.
  require_same(communicator_, description_);
  require_usable(gradients_, options_);
  wire_ = agreed_wire(communicator_, options_);
  std::vector<std::size_t> order = reverse_registration(gradients_.size());
  const std::size_t bytes = PoolLayout{gradients_, order}.bytes();
  // A sparse step that may be skipped must not pack in place.
  const bool apart = options_.sparse.sparsity > 0 && options_.loss_scale.enabled;
  if (wire_ != WireType::F32 || apart) wire_buffer_.emplace(communicator_, bytes, wire_);
  laid_ = std::make_unique<Laid>(*this, std::move(order));
  for (int k = 0; k < (options_.double_buffering ? 2 : 1); ++k) {
    pools_.push_back(communicator_.allocate(bytes));
    std::memset(pools_.back().data(), 0, pools_.back().bytes());
  }
  held_.plan();
}

WireConversion Reducer::Impl::passage(double loss_scale) const {
  return {.wire = wire_,
          .ranks = communicator_.size(),
          .wire_scale = wire_scale_.value(),
          .loss_scale = loss_scale,
          .loss_scaled = options_.loss_scale.enabled};
}

void Reducer::Impl::begin_step(double loss_scale) {
  if (options_.double_buffering) make_buckets();
  laid_->flight.begin({.pool = pools_[current_].data(),
                       .passage = passage(loss_scale),
                       .timeline = timeline_,
                       .norms = held_.norms()},
                      laid_->list.buckets());
}

// Of the step that was planned last. REQUIRES: no bucket is on its way.
void Reducer::Impl::make_buckets() {
  if (!held_.possible()) return;  // always the same
  if (held_.sparsity().sparse()) {
    laid_->list.set_sparse(held_.holding());
  } else {
    laid_->list.set_whole();
  }
}

void Reducer::Impl::plan_next() {
  laid_->readiness.clear();
  held_.plan();
  if (options_.double_buffering) return;  // its buckets are made when they are sent
  make_buckets();
  if (held_.possible()) laid_->readiness.set_buckets(laid_->list.ranges());
}

void Reducer::Impl::mark_ready(std::size_t i) {
  Readiness& readiness = laid_->readiness;
  if (readiness.is_ready(i))
    base::refuse(
        base::format("gradient \"{}\" was made ready twice in one step; call finish() after each "
                     "backward that sends gradients",
                     gradients_[i].name));
  const std::size_t leavable = readiness.mark(i);
  held_.add_decay(i, slot(i), loss_scale_.value());
  if (options_.double_buffering) return;
  InFlightStep& flight = laid_->flight;
  if (!flight.begun()) begin_step(loss_scale_.value());
  if (const std::size_t own = readiness.bucket_of(i); readiness.is_full(own)) flight.set_ready(own);
  flight.send(leavable);
}

// Peers may need what this rank has sent of a step that it never asks for; one that fails itself
// does not hold them up.
Reducer::Impl::~Impl() {
  const bool fails = std::uncaught_exceptions() > exceptions_;
  if (fails || !options_.double_buffering || !laid_->flight.begun()) return;
  try {
    laid_->flight.wait();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody asks for it any more
  }
}

FinishedStep Reducer::Impl::finish() {
  try {
    FinishedStep finished = finish_step();
    plan_next();
    if (timeline_ != nullptr) timeline_->end_step();
    return finished;
  } catch (...) {
    // Who goes on after a failure is to hear of that, not of gradients marked twice.
    laid_->readiness.clear();
    throw;
  }
}

FinishedStep Reducer::Impl::finish_step() {
  clear_unmarked();
  FinishedStep finished{.empty = true};
  if (options_.double_buffering) {
    const double carried = loss_scale_.value();
    if (in_flight()) finished = complete();
    if (!observed_) lay_as_observed(laid_->readiness.marked());
    begin_step(carried);
    send_rest();
    current_ = 1 - current_;
  } else {
    if (!laid_->flight.begun()) begin_step(loss_scale_.value());
    send_rest();
    finished = complete();
    if (!observed_) lay_as_observed(laid_->readiness.marked());
  }
  return finished;
}

FinishedStep Reducer::Impl::flush() {
  if (!options_.double_buffering || !in_flight()) return {.empty = true};
  current_ = 1 - current_;
  return complete();
}

// What this rank has no gradient for counts as zero.
void Reducer::Impl::clear_unmarked() {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (!laid_->readiness.is_ready(i)) std::memset(slot(i), 0, laid_->layout.bytes_of(i));
  }
}

void Reducer::Impl::send_rest() {
  laid_->flight.send(laid_->list.buckets().size());
  laid_->flight.send_tail(laid_->readiness.marked());
}

// Waits for the step on its way and brings its means home.
void Reducer::Impl::settle(const char* waiting) {
  if (settled_) return;
  InFlightStep& flight = laid_->flight;
  const std::int64_t begin_ns = timeline_ != nullptr ? timeline_->now_ns() : 0;
  flight.wait();
  if (timeline_ != nullptr) timeline_->add_wait(waiting, begin_ns, timeline_->now_ns());

  for (std::size_t r = 0; r < faults_.size(); ++r)
    faults_[r] = flight.tail().faults(static_cast<Rank>(r));
  settled_ = judge(faults_, flight.step().sums, flight.step().passage, gradients_);
  if (settled_->skipped) return;
  for (Bucket* bucket : laid_->list.buckets()) bucket->deliver();
}

FinishedStep Reducer::Impl::complete() {
  settle("finish");
  Verdict verdict = std::move(*settled_);
  settled_.reset();
  const StepTrailer& tail = laid_->flight.tail();
  for (std::size_t i = 0; i < used_.size(); ++i) note_users(i, tail.users(i));
  const StepContext& step = laid_->flight.step();
  // A step that was skipped for the wire's sake says nothing of the loss scale.
  if (verdict.lower_loss_scale || !verdict.skipped)
    loss_scale_.update(step.passage.loss_scale, verdict.lower_loss_scale);
  if (verdict.lower_wire_scale) {
    wire_scale_.lower(step.passage.wire_scale);
  } else if (!verdict.skipped && step.passage.wire == WireType::F16) {
    wire_scale_.update(step.passage.wire_scale, step.largest);
  }
  held_.sparsity().complete(verdict.skipped, tail.extra());
  if (held_.sparsity().was_sparse()) note_held_back();
  return {.skipped = verdict.skipped, .warning = std::move(verdict.warning)};
}

// What arrives may be of steps in which some rank had the gradient.
void Reducer::Impl::note_held_back() {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (held_.sparsity().chunks().whole(i)) continue;
    used_[i] = used_[i] || (ever_used_[i] && !held_.sparsity().arrived(i).empty());
  }
}

void Reducer::Impl::note_users(std::size_t i, int users) {
  used_[i] = users > 0;
  ever_used_[i] = ever_used_[i] || used_[i];
  if (users == communicator_.size() || told_[i]) return;
  told_[i] = true;
  if (communicator_.rank() != 0) return;
  const std::string& name = gradients_[i].name;
  base::log_warning(
      users == 0 ? base::format("in one step no rank had a gradient for \"{}\"; its parameter is "
                                "then left as it is",
                                name)
                 : base::format("in one step {} of {} ranks had a gradient for \"{}\"; it counts "
                                "as zero at the others",
                                users, communicator_.size(), name));
}

// REQUIRES: nothing is on its way.
void Reducer::Impl::lay_as_observed(const std::vector<std::size_t>& seen) {
  observed_ = true;
  std::vector<std::size_t> order =
      agreed_order(communicator_, observed_order(seen, gradients_.size()));
  if (order == laid_->layout.order()) return;
  const Pool& pool = pools_[current_];
  const std::vector<std::byte> before{pool.data(), pool.data() + pool.bytes()};
  auto laid = std::make_unique<Laid>(*this, std::move(order));
  const auto old = std::exchange(laid_, std::move(laid));
  std::memset(pool.data(), 0, pool.bytes());
  for (std::size_t i = 0; i < gradients_.size(); ++i)
    std::copy_n(before.data() + old->layout.offset(i), old->layout.bytes_of(i), slot(i));
  for (const std::size_t i : old->readiness.marked()) laid_->readiness.mark(i);
  ++layout_version_;
}

void Reducer::Impl::capture(ReducerState& to) {
  if (!laid_->readiness.marked().empty())
    base::refuse(
        "a state was to be captured between backward and finish(); capture it after finish()");
  to.in_flight = in_flight();
  if (to.in_flight) capture_in_flight(to.mean);
  to.description = description_;
  to.order = laid_->layout.order();
  to.layout_hash = layout_hash(description_, to.order);
  to.observed = observed_;
  to.wire_scale = wire_scale_.value();
  to.loss_scale = loss_scale_.value();
  to.clean_steps = loss_scale_.clean_steps();
  to.ever_used.assign(ever_used_.begin(), ever_used_.end());
  to.sparsity = held_.sparsity().state();
  to.residual.assign(held_.residual().begin(), held_.residual().end());
}

void Reducer::Impl::capture_in_flight(MeanInFlight& to) {
  settle("capture");
  const StepContext& step = laid_->flight.step();
  const StepTrailer& tail = laid_->flight.tail();
  to.verdict = *settled_;
  to.pool.clear();
  if (!settled_->skipped) to.pool.assign(step.pool, step.pool + laid_->layout.bytes());
  to.used.resize(gradients_.size());
  for (std::size_t i = 0; i < to.used.size(); ++i) to.used[i] = tail.users(i) > 0 ? 1 : 0;
  to.norms.assign(tail.extra().begin(), tail.extra().end());
  to.wire_scale = step.passage.wire_scale;
  to.loss_scale = step.passage.loss_scale;
  to.largest = step.largest;
}

void Reducer::Impl::restore(const ReducerState& from) {
  if (observed_ || in_flight() || !laid_->readiness.marked().empty())
    base::refuse("a state was to be restored after the first backward; restore it before");
  const Status fits = check_state(from, {.description = description_,
                                         .gradients = gradients_.size(),
                                         .pool_bytes = laid_->layout.bytes(),
                                         .chunks = held_.sparsity().chunks().size(),
                                         .elements = held_.sparsity().chunks().elements(),
                                         .double_buffering = options_.double_buffering});
  if (!fits.ok()) throw Error{fits};
  laid_ = std::make_unique<Laid>(*this, from.order);
  ++layout_version_;
  observed_ = from.observed;
  wire_scale_.restore(from.wire_scale);
  loss_scale_.restore(from.loss_scale, from.clean_steps);
  std::copy(from.ever_used.begin(), from.ever_used.end(), ever_used_.begin());
  held_.sparsity().restore(from.sparsity);
  std::copy(from.residual.begin(), from.residual.end(), held_.residual().begin());
  if (!options_.double_buffering) {
    make_buckets();
    laid_->readiness.set_buckets(laid_->list.ranges());
  }
  if (!from.in_flight) return;

  const Pool& pool = pools_[1 - current_];
  std::copy(from.mean.pool.begin(), from.mean.pool.end(), pool.data());
  StepContext step{.pool = pool.data(), .passage = passage(from.mean.loss_scale)};
  step.passage.wire_scale = from.mean.wire_scale;
  step.largest = from.mean.largest;
  StepTrailer& tail = laid_->flight.land(step);
  tail.clear();
  for (std::size_t i = 0; i < from.mean.used.size(); ++i)
    tail.set_users(i, from.mean.used[i] != 0 ? communicator_.size() : 0);
  std::copy(from.mean.norms.begin(), from.mean.norms.end(), tail.extra().begin());
  settled_ = from.mean.verdict;
}

Reducer::Reducer(Communicator communicator, std::vector<GradientSpec> gradients,
                 GradientOptions options)
    : impl_{std::make_unique<Impl>(communicator, std::move(gradients), std::move(options))} {}
Reducer::~Reducer() = default;

std::size_t Reducer::size() const { return impl_->size(); }
std::byte* Reducer::slot(std::size_t i) { return impl_->slot(i); }
std::uint64_t Reducer::layout_version() const { return impl_->layout_version(); }
void Reducer::mark_ready(std::size_t i) { impl_->mark_ready(i); }
double Reducer::loss_scale() const { return impl_->loss_scale(); }
FinishedStep Reducer::finish() { return impl_->finish(); }
FinishedStep Reducer::flush() { return impl_->flush(); }
std::byte* Reducer::result(std::size_t i) { return impl_->slot(i); }
bool Reducer::used(std::size_t i) const { return impl_->used(i); }
std::span<const GradientPart> Reducer::arrived(std::size_t i) const {
  return impl_->held().sparsity().arrived(i);
}
void Reducer::set_decay(std::size_t i, const float* weights, float decay) {
  impl_->held().set_decay(i, weights, decay);
}
bool Reducer::holds_decay(std::size_t i) const { return impl_->held().holds_decay(i); }
std::span<float> Reducer::residual() { return impl_->held().residual(); }
void Reducer::capture(ReducerState& to) { impl_->capture(to); }
ReducerState Reducer::state() {
  ReducerState state;
  impl_->capture(state);
  return state;
}
void Reducer::restore(const ReducerState& from) { impl_->restore(from); }
void Reducer::set_timeline(Timeline* timeline) { impl_->set_timeline(timeline); }

}  // namespace sluice::gradient
