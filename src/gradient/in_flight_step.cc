#include "gradient/in_flight_step.h"

#include <algorithm>
#include <utility>

namespace sluice::gradient {

StepTrailer::StepTrailer(Communicator& communicator, std::size_t gradients, std::size_t extra)
    : pool_{communicator.allocate(
          (gradients + kFaultNumbers * static_cast<std::size_t>(communicator.size()) + extra) *
          sizeof(float))},
      numbers_{pool_.as<float>()},
      faults_{gradients},
      ranks_{static_cast<std::size_t>(communicator.size())},
      rank_{communicator.rank()} {
  numbers_ = numbers_.first(gradients + kFaultNumbers * ranks_ + extra);
}

void StepTrailer::clear() { std::fill(numbers_.begin(), numbers_.end(), 0.0F); }

std::span<float> StepTrailer::faults_of(Rank rank) const {
  return numbers_.subspan(faults_ + kFaultNumbers * static_cast<std::size_t>(rank), kFaultNumbers);
}

void StepTrailer::set_faults(const Faults& faults) {
  const std::span<float> own = faults_of(rank_);
  own[0] = static_cast<float>(faults.overflowed);
  own[1] = static_cast<float>(faults.not_finite);
  own[2] = faults.first == kNoGradient ? 0.0F : static_cast<float>(faults.first + 1);
  own[3] = static_cast<float>(faults.in_first);
}

Faults StepTrailer::faults(Rank rank) const {
  const std::span<float> theirs = faults_of(rank);
  return {.overflowed = static_cast<std::uint64_t>(theirs[0]),
          .not_finite = static_cast<std::uint64_t>(theirs[1]),
          .first = theirs[2] == 0 ? kNoGradient : static_cast<std::size_t>(theirs[2]) - 1,
          .in_first = static_cast<std::uint64_t>(theirs[3])};
}

InFlightStep::InFlightStep(Communicator communicator, StepContext& step, Plan plan)
    : step_{&step},
      communicator_{std::move(communicator)},
      tail_{communicator_, plan.gradients, plan.chunks} {
  options_.algorithm = std::move(plan.algorithm);
  works_.reserve(plan.gradients + 1);
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
    options_.type = bucket.type();
    options_.op = bucket.op();
    issue(bucket.data(), bucket.count(), options_, bucket);
  }
}

void InFlightStep::TrailerHooks::load() {
  for (Bucket* bucket : flight.buckets_) {
    if (bucket->count() == 0) bucket->pass_by();
  }
  const StepContext& step = flight.step();
  flight.tail_.set_faults(step.faults);
  std::copy(step.norms.begin(), step.norms.end(), flight.tail_.extra().begin());
}

void InFlightStep::send_tail(const std::vector<std::size_t>& used) {
  tail_.clear();
  for (const std::size_t i : used) tail_.set_used(i);
  issue(tail_.data(), tail_.count(), {}, tail_errand_);
}

void InFlightStep::issue(void* data, std::size_t count, const CollectiveOptions& options,
                         engine::ProgressHooks& errand) {
  works_.push_back(engine::all_reduce_in_background(communicator_, data, count, options, &errand));
}

void InFlightStep::wait() {
  for (Work& work : works_) work.wait();
  works_.clear();
  begun_ = false;
}

}  // namespace sluice::gradient
