// totals_exchange.h - what ranks must know of each other while they train, summed in the
// background.
//
// Every few steps each rank sends what has happened since; the sum is taken up when the next is
// sent, so that nobody waits for it. How many steps that is follows from the time they took, as
// summed, so all ranks send and take up at the same steps, and whatever they conclude they conclude
// together. Where steps are slow the sum is waited for at once: it costs little beside them, and a
// rank that is told to stop is heard a step earlier.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/communicator.h"

namespace sluice::train {

// Of one rank, or summed over all; and over steps.
struct StepTotals {
  double steps = 0;
  double images = 0;
  double loss = 0;
  double seconds = 0;
  double waited_s = 0;
  double told_to_stop = 0;  // above 0: somebody was
  double hopeless = 0;      // above 0: somebody's loss is not finite, and has not been for long

  StepTotals& operator+=(const StepTotals& other);
};

// Thread-safety: one thread at a time.
class TotalsExchange {
 public:
  static constexpr double kSecondsBetween = 0.2;
  static constexpr double kSlowStep = 0.5;  // seconds

  // `communicator` must outlive it.
  explicit TotalsExchange(Communicator& communicator) : communicator_{&communicator} {}
  ~TotalsExchange();
  TotalsExchange(const TotalsExchange&) = delete;
  TotalsExchange& operator=(const TotalsExchange&) = delete;

  // After every step, with what it was here. Returns a sum when one has arrived, of steps up to
  // some time ago. Throws Error, as Work::wait() does.
  std::optional<StepTotals> step(const StepTotals& own);
  // All that step() has not returned. Every rank must call it, after the same step.
  StepTotals finish();

 private:
  void send();
  StepTotals receive();

  Communicator* communicator_;
  std::int64_t every_ = 1;  // steps
  std::int64_t since_ = 0;
  bool slow_ = false;
  StepTotals own_;
  StepTotals travelling_;
  std::optional<Work> work_;
};

}  // namespace sluice::train
