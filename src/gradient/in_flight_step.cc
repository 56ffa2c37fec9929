#include "gradient/in_flight_step.h"

#include <algorithm>
#include <utility>

namespace sluice::gradient {

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
