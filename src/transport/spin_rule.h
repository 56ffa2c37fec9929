// spin_rule.h - how long a rank looks for messages before it sleeps.
//
// A thread that sleeps is woken tens of microseconds late, on a virtual machine later still. Where
// messages come sooner than that, it pays to look for them again and again. Where they come later,
// or another thread needs the core, it does not. The rule learns which from the waits so far,
// whether the rank slept in them or not. It is a pure function of what it is told.
#pragma once

#include <algorithm>
#include <chrono>

namespace sluice::transport {

class SpinRule {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kLongest = std::chrono::microseconds{200};
  static constexpr Duration kShortest = std::chrono::microseconds{12};
  // A rank that yields and gets its core back only after this time has lost it to a thread that
  // computes. A sleeping rank would have been woken earlier.
  static constexpr Duration kLostCore = std::chrono::milliseconds{1};
  static constexpr int kMostPauses = 1024;

  // Whether a rank that has found nothing for that long looks again before it sleeps.
  bool looks_again(Duration idle) const { return idle < limit_; }

  // A message came after a wait of that length.
  void waited(Duration idle) {
    if (pauses_ > 0) {
      --pauses_;
      return;
    }
    if (idle <= kLongest) {
      limit_ = std::clamp(2 * limit_, kShortest, kLongest);
      next_pauses_ = std::max(next_pauses_ / 2, 1);
    } else {
      limit_ = limit_ / 2 < kShortest ? Duration::zero() : limit_ / 2;
    }
  }

  // Between two looks the core was away for at least kLostCore. The rank does not look for twice as
  // many waits as the last time.
  void lost_core() {
    limit_ = Duration::zero();
    next_pauses_ = std::min(4 * next_pauses_, kMostPauses);
    pauses_ = next_pauses_;
  }

 private:
  Duration limit_ = kLongest;
  int pauses_ = 0;       // waits that teach nothing, because the core was lost
  int next_pauses_ = 1;  // the length of the last such pause, halved by every short wait since
};

}  // namespace sluice::transport
