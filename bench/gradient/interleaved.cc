#include "bench/gradient/interleaved.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "bench/network/stolen_time.h"
#include "bench/program.h"
#include "engine/internal_collectives.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStreamPart = 0.945;  // fraction of the link rate that a TCP stream has as payload

class InterleavedTrainings {
 public:
  InterleavedTrainings(const InterleavedOptions& options, const std::vector<Way>& ways,
                       Communicator& comm, const box::Gate& gate, SharedState& shared)
      : options_{options}, ways_{ways}, comm_{comm}, gate_{gate}, shared_{shared} {
    for (const Way& way : ways_)
      trainings_.push_back(std::make_unique<Training>(options.workload, comm, way.options));
    shared_.gradient_bytes = trainings_[0]->gradient_bytes();
  }

  std::string run() {
    set_rate(kUnlimited);
    for (const auto& training : trainings_) {  // builds the pools and warms up
      training->step();
      training->flush();
    }
    if (options_.plain > 0) measure_fixed_part();
    for (int round = 0; round < options_.rounds; ++round) {
      note(base::format("round {} of {}", round + 1, options_.rounds));
      if (const std::string wrong = take_round(); !wrong.empty()) return wrong;
    }
    if (comm_.rank() == 0) conclude();
    return check();
  }

 private:
  void note(const std::string& line) const {
    if (comm_.rank() == 0) base::print(stderr, "{}\n", line);
  }
  // The largest value of all ranks.
  double largest(double value) {
    comm_.all_reduce(std::span{&value, 1}, {.op = ReduceOp::Max}).wait();
    return value;
  }

  void set_rate(int mbit) {
    if (comm_.rank() == 0) shared_.mbit = mbit;
    gate_.pass();
  }

  double bits_to_send() const {
    const double n = comm_.size();
    return 2 * (n - 1) / n * shared_.gradient_bytes * 8;
  }
  int rate_for(double seconds) const {
    return static_cast<int>(std::lround(bits_to_send() / kStreamPart / seconds / 1e6));
  }

  // Measures the time of a plain step without its transfer, as a fraction of an unlimited step. The
  // two take turns as in the rounds, because a way that runs alone runs faster.
  void measure_fixed_part() {
    constexpr int kTrials = 2;
    for (int trial = 0; trial < kTrials; ++trial) {
      set_rate(kUnlimited);
      const double unlimited = slice(kUnlimitedWay, true);
      const int mbit = std::clamp(rate_for((options_.plain - 1) * unlimited), 1, options_.fastest);
      set_rate(mbit);
      fixed_parts_.push_back(fixed_part(slice(kPlainWay, true), mbit, unlimited));
    }
  }
  double fixed_part(double plain, int mbit, double unlimited) const {
    return (plain - bits_to_send() / kStreamPart / (mbit * 1e6)) / unlimited;
  }

  // Measures every way once. The speed of the machine drifts, so each round has its own link rate
  // and is compared only with itself.
  std::string take_round() {
    std::vector<double> seconds(ways_.size());
    const auto take = [&](std::size_t way) {
      const double taken = slice(way, true);
      note(base::format("  {} {}", ways_[way].name, base::format_seconds(taken)));
      return taken;
    };
    set_rate(kUnlimited);
    seconds[kAloneWay] = take(kAloneWay);
    const double before = take(kUnlimitedWay);
    const int mbit = options_.plain > 0 ? rate_for((options_.plain - median(fixed_parts_)) * before)
                                        : rate_for(options_.ratio * seconds[kAloneWay]);
    if (mbit > options_.fastest) {
      constexpr double kMargin = 1.2;  // the machine may be faster in the next run
      return base::format("this needs links of {} Mbit/s, more than {}: use a batch of {:.0f}",
                          mbit, options_.fastest,
                          kMargin * options_.workload.batch * mbit / options_.fastest);
    }
    if (mbit < 1) return "this needs links of less than 1 Mbit/s: use a smaller batch";
    note(base::format("  link rate {} Mbit/s", mbit));
    set_rate(mbit);
    for (std::size_t way = kUnlimitedWay + 1; way < ways_.size(); ++way) seconds[way] = take(way);
    rounds_.push_back({.mbit = mbit,
                       .seconds = {},
                       .transfer_s = transfer(),
                       .bound_s = bound(mbit * 1e6 / 8 * kStreamPart),
                       .strict_bound_s = bound(mbit * 1e6 / 8)});
    set_rate(kUnlimited);
    seconds[kUnlimitedWay] = (before + take(kUnlimitedWay)) / 2;
    if (options_.plain > 0)
      fixed_parts_.push_back(fixed_part(seconds[kPlainWay], mbit, seconds[kUnlimitedWay]));
    rounds_.back().seconds = std::move(seconds);
    return "";
  }

  void conclude() {
    const auto over_rounds = [&](auto value) {
      std::vector<double> values;
      for (const Round& round : rounds_) values.push_back(value(round));
      return median(values);
    };
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      StepTime& step = shared_.steps[way];
      step.s = over_rounds([&](const Round& round) { return round.seconds[way]; });
      for (std::size_t unit = 0; unit < kUnits.size(); ++unit) {
        step.ratios[unit] = over_rounds(
            [&](const Round& round) { return round.seconds[way] / round.units()[unit]; });
      }
    }
    shared_.limited_mbit = over_rounds([](const Round& round) { return round.mbit; });
    shared_.transfer_s = over_rounds([](const Round& round) { return round.transfer_s; });
    shared_.transfer_of_alone =
        over_rounds([](const Round& round) { return round.transfer_s / round.seconds[kAloneWay]; });
    shared_.bound_s = over_rounds([](const Round& round) { return round.bound_s; });
    shared_.strict_bound_s = over_rounds([](const Round& round) { return round.strict_bound_s; });
  }

  // The time of a step at the slowest rank, after an untimed step.
  double slice(std::size_t way, bool check_stolen) {
    constexpr double kMostStolen = 0.02;
    constexpr int kAttempts = 3;
    double best = 0;
    double least = 1;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Training& training = *trainings_[way];
      comm_.barrier();
      training.step();
      const StolenTime stolen;
      const auto begin = Clock::now();
      for (int i = 0; i < options_.steps; ++i) training.step();
      const double own = std::chrono::duration<double>(Clock::now() - begin).count();
      training.flush();
      const double seconds = largest(own) / options_.steps;
      const double share = largest(stolen.share());
      taken_[way] += options_.steps + 1;
      if (share < least) {
        least = share;
        best = seconds;
      }
      if (!check_stolen || share <= kMostStolen) break;
    }
    if (check_stolen && comm_.rank() == 0)
      shared_.most_stolen = std::max(shared_.most_stolen, least);
    return best;
  }

  // The time of an all-reduce of all gradients, without computation.
  double transfer() {
    const auto count = static_cast<std::size_t>(shared_.gradient_bytes) / sizeof(float);
    const Pool pool = comm_.allocate(count * sizeof(float));
    comm_.barrier();
    const auto begin = Clock::now();
    comm_.all_reduce(pool.as<float>()).wait();
    return largest(std::chrono::duration<double>(Clock::now() - begin).count());
  }

  double bound(double bytes_per_s) {
    comm_.barrier();
    double update_s = 0;
    std::vector<ReadyGradient> gradients = trainings_[0]->ready_times(update_s);
    const double n = comm_.size();
    for (ReadyGradient& gradient : gradients) gradient.bytes *= 2 * (n - 1) / n;
    return largest(earliest_end(gradients, bytes_per_s) + update_s);
  }

  // Checks the weights: the same bits on all ranks, and equal for all exact ways.
  std::string check() {
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!ways_[way].options) continue;
      if (!engine::same_everywhere(comm_, trainings_[way]->weights_hash()))
        return base::format("{}: the ranks have different weights", ways_[way].name);
    }
    std::size_t most = 0;  // ways differ, because disturbed slices were repeated
    for (const auto& [way, taken] : taken_) {
      if (ways_[way].exact) most = std::max(most, taken);
    }
    std::optional<std::size_t> first;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!ways_[way].exact) continue;
      for (; taken_[way] < most; ++taken_[way]) trainings_[way]->step();
      if (!first) first = way;
      constexpr double kTolerance = 1e-4;  // relative; the order of sums differs
      const double distance = trainings_[way]->distance_to(*trainings_[*first]);
      if (distance > kTolerance * trainings_[way]->weights_norm())
        return base::format("the weights of {} are {} away from those of {}", ways_[way].name,
                            distance, ways_[*first].name);
    }
    return "";
  }

  struct Round {
    int mbit = 0;
    std::vector<double> seconds;  // by way
    double transfer_s = 0;
    double bound_s = 0;
    double strict_bound_s = 0;

    std::array<double, kUnits.size()> units() const {
      const double alone = seconds[kAloneWay];
      return {alone, std::max(alone, transfer_s), seconds[kUnlimitedWay], strict_bound_s};
    }
  };

  const InterleavedOptions& options_;
  const std::vector<Way>& ways_;
  Communicator& comm_;
  const box::Gate& gate_;
  SharedState& shared_;
  std::vector<double> fixed_parts_;  // one per trial and round
  std::vector<Round> rounds_;
  std::vector<std::unique_ptr<Training>> trainings_;
  std::map<std::size_t, std::size_t> taken_;
};

}  // namespace

std::string run_interleaved(const InterleavedOptions& options, const std::vector<Way>& ways,
                            Communicator& comm, const box::Gate& gate, SharedState& shared) {
  return InterleavedTrainings{options, ways, comm, gate, shared}.run();
}

}  // namespace sluice::bench
