// step_totals.h - measurements of training steps at one rank, and their sums over all ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "sluice/communicator.h"

namespace sluice::train {

// One step of one rank, or sums over steps and ranks. Ranks send it as an array of f64.
struct StepTotals {
  double steps = 0;
  double images = 0;
  double loss = 0;  // the mean over the samples of a step, summed over steps and ranks
  double seconds = 0;
  double waited_s = 0;        // for communication
  double stop_requested = 0;  // greater than 0: some rank got a request to stop
  double diverged = 0;        // greater than 0: a rank's loss was not finite for many steps

  StepTotals& operator+=(const StepTotals& other);
};

// Measures how long the steps of this rank take.
//
// A step lasts from the end of the step before, so it includes waiting for the loader. begin()
// excludes pauses: evaluations and checkpoints.
class StepMeter {
 public:
  // The first steps are slower than others: memory is allocated, kernels are chosen.
  static constexpr std::int64_t kWarmUp = 10;

  // Call it when a step begins.
  void begin() { begin_ = std::chrono::steady_clock::now(); }
  // Call it when the step ends; the next step begins. Sets step.seconds.
  void end(StepTotals& step);

  const StepTotals& all() const { return all_; }
  // The steps after the warm-up; all steps if there are none after it.
  const StepTotals& steady() const { return steady_.steps > 0 ? steady_ : all_; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  StepTotals all_;
  StepTotals steady_;
};

// Sums the totals of all ranks in the background.
//
// Every few steps each rank sends its totals since the last time, and receives the sum of the time
// before, which has usually arrived. The number of steps in between is computed from the summed
// time of the steps. So all ranks send and receive after the same steps, and make the same
// decisions. If steps are slow, a rank waits for the sum at once: this costs little compared with a
// step, and a request to stop takes effect earlier.
//
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

  // Call it after every step. Returns a sum over all ranks if one has arrived; it may cover older
  // steps. Throws Error, as Work::wait() does.
  std::optional<StepTotals> step(const StepTotals& own);
  // Returns the sum of all steps that step() has not returned. Every rank must call it, after the
  // same step.
  StepTotals finish();

 private:
  void send();
  StepTotals receive();

  Communicator* communicator_;
  std::int64_t every_ = 1;  // steps
  std::int64_t since_ = 0;  // steps since the last send
  bool slow_ = false;
  StepTotals own_;
  StepTotals in_flight_;
  std::optional<Work> work_;
};

}  // namespace sluice::train
