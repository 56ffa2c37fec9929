#include "gradient/bucket.h"

namespace sluice::gradient {

std::int64_t Bucket::tell(const char* name, std::int64_t begin_ns) const {
  const std::int64_t now = step_->timeline->now_ns();
  step_->timeline->add({.name = name,
                        .lane = Timeline::Lane::Progress,
                        .number = static_cast<std::int64_t>(number_),
                        .begin_ns = begin_ns,
                        .end_ns = now});
  return now;
}

void Bucket::set_ready() {
  if (step_->timeline != nullptr && last_ns_ == kNever) last_ns_ = step_->timeline->now_ns();
}

void Bucket::load() {
  if (step_->timeline != nullptr) last_ns_ = tell("wait", last_ns_);
  fill();
  if (step_->timeline != nullptr) last_ns_ = tell("load", last_ns_);
}

void Bucket::unload() {
  if (step_->timeline != nullptr) last_ns_ = tell("transfer", last_ns_);
  drain();
  if (step_->timeline != nullptr) tell("unload", last_ns_);
  last_ns_ = kNever;
}

void Bucket::pass_by() {
  fill();
  drain();
}

}  // namespace sluice::gradient
