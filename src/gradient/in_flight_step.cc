#include "gradient/in_flight_step.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sluice::gradient {
namespace {

// With double buffering all gradients are ready before any is sent, so more than one bucket would
// only add latency.
std::size_t theta_of(const GradientOptions& options) {
  return options.double_buffering ? SIZE_MAX : options.theta;
}

}  // namespace

BucketList::BucketList(const Inputs& inputs, StepContext& step) : inputs_{inputs}, step_{&step} {
  const std::vector<buckets::GradientSize>& sizes = inputs.layout.sizes();
  dense_ranges_ = inputs.options.groups.empty()
                      ? buckets::lazy_buckets(sizes, theta_of(inputs.options))
                      : buckets::grouped_buckets(sizes, inputs.options.groups).value();
  sent_ = sizes;
  ranges_.reserve(sizes.size());
  dense_.reserve(sizes.size());
  sparse_.reserve(sizes.size());
  buckets_.reserve(sizes.size());
  set_dense();
}

void BucketList::clear() {
  buckets_.clear();
  dense_.clear();
  sparse_.clear();
}

BucketSpec BucketList::spec(const buckets::BucketRange& range, const WireBuffer* wire) const {
  return {.gradients = inputs_.gradients,
          .layout = inputs_.layout,
          .range = range,
          .number = buckets_.size(),
          .wire = wire != nullptr && range.type == DataType::F32
                      ? wire->at(inputs_.layout.begin(range.first))
                      : nullptr};
}

void BucketList::add_dense(const buckets::BucketRange& range) {
  dense_.emplace_back(spec(range, inputs_.wire), *step_);
  buckets_.push_back(&dense_.back());
}

void BucketList::set_dense() {
  clear();
  ranges_ = dense_ranges_;
  for (const buckets::BucketRange& range : ranges_) add_dense(range);
}

void BucketList::set_sparse(const SparseContext& context) {
  clear();
  if (inputs_.options.groups.empty()) {
    const SparseChunks& chunks = *context.chunks;
    for (std::size_t position = 0; position < sent_.size(); ++position) {
      const std::size_t i = inputs_.layout.order()[position];
      if (chunks.whole(i)) continue;
      // At least 1, because a gradient of 0 bytes would join a bucket of another type.
      sent_[position].bytes = std::max<std::size_t>(
          1, selected_elements(chunks, i, context.step.selected) * sizeof(float));
    }
    buckets::lazy_buckets(sent_, theta_of(inputs_.options), ranges_);
  } else {
    ranges_ = dense_ranges_;
  }
  for (const buckets::BucketRange& range : ranges_) {
    if (range.type != DataType::F32) {
      add_dense(range);
      continue;
    }
    sparse_.emplace_back(spec(range, inputs_.packed), context, *step_);
    buckets_.push_back(&sparse_.back());
  }
}

StepTrailer::StepTrailer(Communicator& communicator, std::size_t gradients, std::size_t chunks)
    : pool_{communicator.allocate(
          (gradients + kCountNumbers * static_cast<std::size_t>(communicator.size()) + chunks) *
          sizeof(float))},
      numbers_{pool_.as<float>()},
      counts_{gradients},
      ranks_{static_cast<std::size_t>(communicator.size())},
      rank_{communicator.rank()} {
  numbers_ = numbers_.first(gradients + kCountNumbers * ranks_ + chunks);
}

void StepTrailer::clear() { std::fill(numbers_.begin(), numbers_.end(), 0.0F); }

std::span<float> StepTrailer::counts_of(Rank rank) const {
  return numbers_.subspan(counts_ + kCountNumbers * static_cast<std::size_t>(rank), kCountNumbers);
}

void StepTrailer::set_counts(const OverflowCounts& counts) {
  const std::span<float> own = counts_of(rank_);
  own[0] = static_cast<float>(counts.overflowed);
  own[1] = static_cast<float>(counts.not_finite);
  own[2] = counts.first == kNoGradient ? 0.0F : static_cast<float>(counts.first + 1);
  own[3] = static_cast<float>(counts.in_first);
}

OverflowCounts StepTrailer::counts(Rank rank) const {
  const std::span<float> theirs = counts_of(rank);
  return {.overflowed = static_cast<std::uint64_t>(theirs[0]),
          .not_finite = static_cast<std::uint64_t>(theirs[1]),
          .first = theirs[2] == 0 ? kNoGradient : static_cast<std::size_t>(theirs[2]) - 1,
          .in_first = static_cast<std::uint64_t>(theirs[3])};
}

InFlightStep::InFlightStep(Communicator communicator, StepContext& step, Options options)
    : step_{&step},
      communicator_{std::move(communicator)},
      trailer_{communicator_, options.gradients, options.chunks} {
  collective_options_.algorithm = std::move(options.algorithm);
  works_.reserve(options.gradients + 1);
}

void InFlightStep::begin(const StepContext& step, std::span<Bucket* const> buckets) {
  *step_ = step;
  buckets_ = buckets;
  sent_ = 0;
  begun_ = true;
}

void InFlightStep::send(std::size_t end) {
  for (; sent_ < end; ++sent_) {
    Bucket& bucket = *buckets_[sent_];
    if (bucket.count() == 0) continue;
    bucket.set_ready();
    collective_options_.op = bucket.op();
    issue({bucket.data(), bucket.count(), bucket.type()}, collective_options_, bucket);
  }
}

void InFlightStep::TrailerHooks::load() {
  for (Bucket* bucket : owner.buckets_) {
    if (bucket->count() == 0) bucket->process_unsent();
  }
  const StepContext& step = owner.step();
  owner.trailer_.set_counts(step.counts);
  std::copy(step.norms.begin(), step.norms.end(), owner.trailer_.norms().begin());
}

void InFlightStep::send_trailer(const std::vector<std::size_t>& used) {
  trailer_.clear();
  for (const std::size_t i : used) trailer_.set_used(i);
  issue(std::span{trailer_.data(), trailer_.count()}, {}, trailer_hooks_);
}

void InFlightStep::issue(Elements data, const CollectiveOptions& options,
                         engine::ProgressHooks& hooks) {
  works_.push_back(engine::all_reduce_in_background(communicator_, data, options, &hooks));
}

void InFlightStep::wait() {
  for (Work& work : works_) work.wait();
  works_.clear();
  begun_ = false;
}

}  // namespace sluice::gradient
