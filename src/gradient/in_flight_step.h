// step_trailer.h - what the ranks tell each other at the end of a step, behind its buckets: one
// small sum.
//
//   used      for each gradient, how many ranks have one
//   faults    for each rank, the values of its gradients that are not finite
//   extra     whatever else is added up over the ranks
//
// The numbers of all but `extra` are whole and add up exactly; counts past 2^24 are rounded.
// Thread-safety: none of its own.
//
// in_flight_step.h - the buckets of one step and its tail, from the first that leaves to the last
// that arrives. One step at a time.
//
// Buckets and Step are errands and what errands use: they go after the flight does, since once the
// last handle of a communicator is gone nobody runs them.
//
// Thread-safety: one thread at a time; the progress thread runs the errands.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gradient/bucket.h"
#include "gradient/verdict.h"
#include "sluice/communicator.h"

namespace sluice::gradient {

class StepTrailer {
 public:
  StepTrailer(Communicator& communicator, std::size_t gradients, std::size_t extra = 0);

  float* data() const { return numbers_.data(); }
  std::size_t count() const { return numbers_.size(); }

  // Before the sum, at each rank; clear() comes first.
  void clear();
  void set_used(std::size_t i) { numbers_[i] = 1; }
  // As if the sum had come to that.
  void set_users(std::size_t i, int users) { numbers_[i] = static_cast<float>(users); }
  void set_faults(const Faults& faults);
  std::span<float> extra() const { return numbers_.subspan(faults_ + kFaultNumbers * ranks_); }

  // After it.
  int users(std::size_t i) const { return static_cast<int>(numbers_[i]); }
  Faults faults(Rank rank) const;

 private:
  static constexpr std::size_t kFaultNumbers = 4;
  std::span<float> faults_of(Rank rank) const;

  Pool pool_;
  std::span<float> numbers_;
  std::size_t faults_;  // where they begin
  std::size_t ranks_;
  Rank rank_;
};

class InFlightStep {
 public:
  // What its tail has room for, and how buckets travel.
  struct Plan {
    std::size_t gradients = 0;
    std::size_t chunks = 0;
    std::string algorithm;
  };
  // `step` must outlive the flight.
  InFlightStep(Communicator communicator, StepContext& step, Plan plan);
  InFlightStep(const InFlightStep&) = delete;
  InFlightStep& operator=(const InFlightStep&) = delete;

  bool begun() const { return begun_; }

  // `buckets`, of that step, must stay until it has been waited for. REQUIRES: not begun.
  void begin(const StepContext& step, std::span<Bucket* const> buckets);
  // All gradients of a bucket are there.
  void set_ready(std::size_t bucket) { buckets_[bucket]->set_ready(); }
  // The next buckets leave, up to but not including bucket `end`. REQUIRES: begun.
  void send(std::size_t end);
  // The tail leaves. REQUIRES: all buckets have been sent.
  void send_tail(const std::vector<std::size_t>& used);
  // Returns when all results are there; then it is not begun. Throws as Work::wait() does.
  void wait();

  // Of the step that was waited for last, until the next begins.
  const StepContext& step() const { return *step_; }
  const StepTrailer& tail() const { return tail_; }

  // As if `step` had been waited for; the tail is then the caller's to fill. REQUIRES: not begun.
  StepTrailer& land(const StepContext& step) {
    *step_ = step;
    return tail_;
  }

 private:
  struct TrailerHooks final : engine::ProgressHooks {
    explicit TrailerHooks(InFlightStep& owner) : flight{owner} {}
    void load() override;
    InFlightStep& flight;
  };
  void issue(void* data, std::size_t count, const CollectiveOptions& options,
             engine::ProgressHooks& errand);

  StepContext* step_;
  std::span<Bucket* const> buckets_;
  TrailerHooks tail_errand_{*this};
  Communicator communicator_;
  StepTrailer tail_;
  std::vector<Work> works_;
  CollectiveOptions options_;
  std::size_t sent_ = 0;
  bool begun_ = false;
};

}  // namespace sluice::gradient
