#include "gradient/flight.h"

#include <utility>

namespace sluice {

Flight::Flight(Communicator communicator, const Plan& plan)
    : communicator_{std::move(communicator)}, tail_{communicator_, plan.gradients.size()} {
  options_.algorithm = plan.algorithm;
  step_.passage = {.wire = plan.wire, .ranks = communicator_.size()};
  for (const BucketRange& range : plan.buckets) {
    const bool narrowed = plan.buffer != nullptr && range.type == DataType::F32;
    buckets_.emplace_back(
        Bucket::Place{.gradients = plan.gradients,
                      .layout = plan.layout,
                      .range = range,
                      .number = buckets_.size(),
                      .wire = narrowed ? plan.buffer->at(plan.layout.begin(range.first)) : nullptr},
        step_);
  }
  works_.reserve(buckets_.size() + 1);
}

void Flight::begin(std::byte* pool, const Passage& passage, Timeline* timeline) {
  Passage own = passage;
  own.wire = step_.passage.wire;
  own.ranks = step_.passage.ranks;
  step_ = {.pool = pool, .passage = own, .timeline = timeline};
  sent_ = 0;
  begun_ = true;
}

void Flight::send(std::size_t end) {
  for (; sent_ < end; ++sent_) {
    Bucket& bucket = buckets_[sent_];
    if (bucket.count() == 0) continue;
    bucket.set_ready();
    options_.type = bucket.type();
    options_.op = bucket.op();
    issue(bucket.data(), bucket.count(), options_, bucket);
  }
}

void Flight::send_tail(const std::vector<std::size_t>& used) {
  tail_.clear();
  for (const std::size_t i : used) tail_.set_used(i);
  issue(tail_.data(), tail_.count(), {}, tail_errand_);
}

void Flight::issue(void* data, std::size_t count, const CollectiveOptions& options,
                   Errand& errand) {
  works_.push_back(all_reduce_in_background(communicator_, data, count, options, &errand));
}

void Flight::wait() {
  for (Work& work : works_) work.wait();
  works_.clear();
  begun_ = false;
}

}  // namespace sluice
