#include "bench/gradient/contest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "bench/allreduce/median.h"
#include "bench/network/stolen_time.h"
#include "engine/internal_collectives.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStreamPart = 0.945;  // of a link's rate that a plain TCP stream has as payload

class Contest {
 public:
  Contest(const ContestOptions& options, const std::vector<Way>& ways, Communicator& comm,
          const box::Gate& gate, Told& told)
      : options_{options}, ways_{ways}, comm_{comm}, gate_{gate}, told_{told} {
    for (const Way& way : ways_)
      trainings_.push_back(std::make_unique<Training>(options.workload, comm, way.options));
    told_.gradient_bytes = trainings_[0]->gradient_bytes();
  }

  std::string run() {
    set_rate(kUnlimited);
    for (const auto& training : trainings_) {  // lays the pools out, warms everything up
      training->step();
      training->flush();
    }
    if (options_.plain > 0) find_besides();
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
  // Of all ranks'.
  double largest(double value) {
    comm_.all_reduce(&value, 1, {.type = DataType::F64, .op = ReduceOp::Max}).wait();
    return value;
  }

  void set_rate(int mbit) {
    if (comm_.rank() == 0) told_.mbit = mbit;
    gate_.pass();
  }

  double bits_to_send() const {
    const double n = comm_.size();
    return 2 * (n - 1) / n * told_.gradient_bytes * 8;
  }
  int rate_for(double seconds) const {
    return static_cast<int>(std::lround(bits_to_send() / kStreamPart / seconds / 1e6));
  }

  // What a plain step takes besides the transfer, of an unlimited one, by trial. The two take
  // turns, as they will in the rounds: a way that runs on its own runs faster.
  void find_besides() {
    constexpr int kTrials = 2;
    for (int trial = 0; trial < kTrials; ++trial) {
      set_rate(kUnlimited);
      const double unlimited = slice(kUnlimitedWay, true);
      const int mbit = std::clamp(rate_for((options_.plain - 1) * unlimited), 1, options_.fastest);
      set_rate(mbit);
      besides_.push_back(besides(slice(kPlainWay, true), mbit, unlimited));
    }
  }
  double besides(double plain, int mbit, double unlimited) const {
    return (plain - bits_to_send() / kStreamPart / (mbit * 1e6)) / unlimited;
  }

  // Every way once. The speed of a machine changes while one waits, so each round has the rate that
  // its own computation asks for, and is compared with itself alone.
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
    const int mbit = options_.plain > 0 ? rate_for((options_.plain - median(besides_)) * before)
                                        : rate_for(options_.ratio * seconds[kAloneWay]);
    if (mbit > options_.fastest) {
      constexpr double kMargin = 1.2;  // the next run may find the machine faster still
      return base::format("links of {} Mbit/s would be needed, beyond {}: take a batch of {:.0f}",
                          mbit, options_.fastest,
                          kMargin * options_.workload.batch * mbit / options_.fastest);
    }
    if (mbit < 1) return "links of less than 1 Mbit/s would be needed: take a smaller batch";
    note(base::format("  links get {} Mbit/s", mbit));
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
      besides_.push_back(besides(seconds[kPlainWay], mbit, seconds[kUnlimitedWay]));
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
      StepTime& step = told_.steps[way];
      step.s = over_rounds([&](const Round& round) { return round.seconds[way]; });
      for (std::size_t unit = 0; unit < kUnits.size(); ++unit) {
        step.of[unit] = over_rounds(
            [&](const Round& round) { return round.seconds[way] / round.units()[unit]; });
      }
    }
    told_.limited_mbit = over_rounds([](const Round& round) { return round.mbit; });
    told_.transfer_s = over_rounds([](const Round& round) { return round.transfer_s; });
    told_.transfer_of_alone =
        over_rounds([](const Round& round) { return round.transfer_s / round.seconds[kAloneWay]; });
    told_.bound_s = over_rounds([](const Round& round) { return round.bound_s; });
    told_.strict_bound_s = over_rounds([](const Round& round) { return round.strict_bound_s; });
  }

  // Seconds of a step at the slowest rank, after one that nobody times.
  double slice(std::size_t way, bool watched) {
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
      if (!watched || share <= kMostStolen) break;
    }
    if (watched && comm_.rank() == 0) told_.most_stolen = std::max(told_.most_stolen, least);
    return best;
  }

  // An all-reduce of all gradients, with nothing beside it.
  double transfer() {
    const auto count = static_cast<std::size_t>(told_.gradient_bytes) / sizeof(float);
    const Pool pool = comm_.allocate(count * sizeof(float));
    comm_.barrier();
    const auto begin = Clock::now();
    comm_.all_reduce(pool.data(), count).wait();
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

  // Every way's weights are the same bits at all ranks, and where two did the same steps the same.
  std::string check() {
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!ways_[way].options) continue;
      if (!engine::same_everywhere(comm_, trainings_[way]->weights_hash()))
        return base::format("{}: ranks have different weights", ways_[way].name);
    }
    std::size_t most = 0;  // slices that were disturbed have been repeated, so ways differ
    for (const auto& [way, taken] : taken_) {
      if (ways_[way].exact) most = std::max(most, taken);
    }
    std::optional<std::size_t> first;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!ways_[way].exact) continue;
      for (; taken_[way] < most; ++taken_[way]) trainings_[way]->step();
      if (!first) first = way;
      constexpr double kTolerance = 1e-4;  // relative: sums are taken in another order
      const double distance = trainings_[way]->distance_to(*trainings_[*first]);
      if (distance > kTolerance * trainings_[way]->weights_norm())
        return base::format("{} ends {} away from {}", ways_[way].name, distance,
                            ways_[*first].name);
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

  const ContestOptions& options_;
  const std::vector<Way>& ways_;
  Communicator& comm_;
  const box::Gate& gate_;
  Told& told_;
  std::vector<double> besides_;  // trial by trial and round by round
  std::vector<Round> rounds_;
  std::vector<std::unique_ptr<Training>> trainings_;
  std::map<std::size_t, std::size_t> taken_;
};

}  // namespace

std::string run_contest(const ContestOptions& options, const std::vector<Way>& ways,
                        Communicator& comm, const box::Gate& gate, Told& told) {
  return Contest{options, ways, comm, gate, told}.run();
}

}  // namespace sluice::bench
