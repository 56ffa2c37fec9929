#include "train/report/step_totals.h"

#include <algorithm>
#include <cmath>

#include "engine/internal_collectives.h"

namespace sluice::train {
namespace {

constexpr std::size_t kNumbers = sizeof(StepTotals) / sizeof(double);
constexpr double kMostSteps = 1000;

}  // namespace

StepTotals& StepTotals::operator+=(const StepTotals& other) {
  steps += other.steps;
  images += other.images;
  loss += other.loss;
  seconds += other.seconds;
  waited_s += other.waited_s;
  stop_requested += other.stop_requested;
  diverged += other.diverged;
  return *this;
}

void StepMeter::end(StepTotals& step) {
  const auto now = std::chrono::steady_clock::now();
  step.seconds = std::chrono::duration<double>(now - begin_).count();
  begin_ = now;
  if (all_.steps >= kWarmUp) steady_ += step;
  all_ += step;
}

TotalsExchange::~TotalsExchange() {
  // The sum is written into our memory, so wait for it. Other collectives report a failure, too.
  try {
    if (work_) work_->wait();
  } catch (const Error&) {
  }
}

void TotalsExchange::send() {
  in_flight_ = own_;
  own_ = {};
  since_ = 0;
  work_ = engine::all_reduce_in_background(*communicator_, {&in_flight_, kNumbers, DataType::F64},
                                           {}, nullptr);
}

StepTotals TotalsExchange::receive() {
  if (!work_) return {};
  Work work = *work_;
  work_.reset();
  work.wait();
  // These numbers have the same bits at every rank.
  const double step_s = std::max(in_flight_.seconds / std::max(in_flight_.steps, 1.0), 1e-6);
  every_ = static_cast<std::int64_t>(std::clamp(kSecondsBetween / step_s, 1.0, kMostSteps));
  slow_ = step_s >= kSlowStep;
  return in_flight_;
}

std::optional<StepTotals> TotalsExchange::step(const StepTotals& own) {
  own_ += own;
  if (++since_ < every_) return std::nullopt;
  const bool pending = work_.has_value();
  StepTotals arrived = receive();
  send();
  if (slow_) {
    arrived += receive();
    return arrived;
  }
  return pending ? std::optional{arrived} : std::nullopt;
}

StepTotals TotalsExchange::finish() {
  StepTotals arrived = receive();
  send();
  arrived += receive();
  return arrived;
}

}  // namespace sluice::train
