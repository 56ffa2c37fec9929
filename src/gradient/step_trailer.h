// step_trailer.h - what the ranks tell each other at the end of a step, behind its buckets: one
// small sum.
//
//   used      for each gradient, how many ranks have one
//   faults    for each rank, the values of its gradients that are not finite
//   extra     whatever else is added up over the ranks
//
// The numbers of all but `extra` are whole and add up exactly; counts past 2^24 are rounded.
// Thread-safety: none of its own.
#pragma once

#include <cstddef>
#include <span>

#include "gradient/faults.h"
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

}  // namespace sluice::gradient
