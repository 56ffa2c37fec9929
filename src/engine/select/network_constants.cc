// network_constants.cc - measures the links between nodes when a job starts.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/select/constants.h"
#include "sluice/analysis/select.h"

namespace sluice::engine {
namespace {

constexpr double kNever = 1e3;  // seconds

struct Candidate {
  std::string_view name;
  bool for_long = false;  // it sends few bytes, so it is also timed with a long buffer
  bool on_grid = false;   // only for nodes of several ranks
};

constexpr Candidate kCandidates[] = {
    {"ring", true},
    {"halving_doubling", true},
    {"direct", true},
    {"torus", true, true},
    {"hierarchical", true, true},
    {"hierarchical:ring", true, true},
    {"recursive_doubling"},
    {"double_tree"},
    {"exchange"},
};

// The load of an algorithm on the links between nodes.
struct LoadBetween {
  double messages = 0;
  double share = 0;     // bytes / bytes of the buffer
  double inside_s = 0;  // latency of the steps that stay inside nodes
};

LoadBetween load_between(std::string_view name, const Topology& topology, const Link& inside,
                         int ranks) {
  const Algorithm& algorithm = *find_algorithm(name).value();
  const Shape shape =
      shape_on(algorithm, {.collective = Collective::AllReduce, .ranks = ranks}, topology).value();
  LoadBetween load;
  for (const StepLoad& step : load_of(algorithm, shape, topology)) {
    load.messages += step.repeat * step.between.messages;
    load.share += step.repeat * step.between.bytes;
    if (step.between.messages == 0)
      load.inside_s += step.repeat * step.inside.messages * inside.latency_s;
  }
  return load;
}

// A ring sends to one peer only, so its rate is steady. Another algorithm that was a little faster
// once may be slower the next time, so its rate is lowered.
double cautious(double rate, double ring_rate) {
  constexpr double kClearlyFaster = 1.15;
  constexpr double kSteadiness = 0.97;
  return kSteadiness * (rate > ring_rate ? std::max(ring_rate, rate / kClearlyFaster) : rate);
}

class Measurement {
 public:
  Measurement(Communicator& communicator, const Topology& topology)
      : communicator_{communicator}, topology_{topology}, constants_{typical_constants()} {
    constants_.measured.clear();
    const bool grid = std::any_of(topology.nodes.begin(), topology.nodes.end(),
                                  [](int ranks) { return ranks > 1; });
    for (const Candidate& candidate : kCandidates) {
      if (!candidate.on_grid || grid) candidates_.push_back(candidate);
    }
  }

  CostConstants run() {
    const std::size_t long_count = find_long_count();
    // No rank's part of the short buffer is empty, so all messages are sent.
    const std::size_t short_count = 16 * static_cast<std::size_t>(communicator_.size());
    std::vector<double> short_s = best_times(short_count, 4, 5, false);
    std::vector<double> long_s = best_times(long_count, 1, 3, true);
    const double bytes = static_cast<double>((long_count - short_count) * sizeof(float));
    // A disturbed short measurement can take longer than the long one. Then only the long one
    // counts.
    const double ring_s = long_s[0] > short_s[0] ? long_s[0] - short_s[0] : long_s[0];
    const double ring_rate = load("ring").share * bytes / ring_s;

    const double overlap = overlap_of(ring_rate, short_s[0], short_count, long_count);
    constants_.between = {.latency_s = 1, .bandwidth_bytes_per_s = ring_rate, .overlap = overlap};
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const LoadBetween load_i = load(candidates_[i].name);
      if (load_i.messages == 0) continue;
      Link link{
          .latency_s = std::max(short_s[i] - load_i.inside_s, short_s[i] / 10) / load_i.messages,
          .bandwidth_bytes_per_s = ring_rate,
          .overlap = overlap};
      if (i > 0 && candidates_[i].for_long && long_s[i] > short_s[i])
        link.bandwidth_bytes_per_s =
            cautious(load_i.share * bytes / (long_s[i] - short_s[i]), ring_rate);
      constants_.between.latency_s = std::min(constants_.between.latency_s, link.latency_s);
      constants_.measured.push_back({.algorithm = std::string{candidates_[i].name},
                                     .inside = constants_.inside,
                                     .between = link});
    }
    return constants_;
  }

 private:
  LoadBetween load(std::string_view name) const {
    return load_between(name, topology_, constants_.inside, communicator_.size());
  }

  // Replaces the values by those of rank 0, at every rank.
  void agree(std::vector<double>& values) { communicator_.broadcast(values).wait(); }

  double time(std::string_view name, std::size_t count, int repeats) {
    if (data_.size() < count) data_.resize(count);
    return seconds_of(communicator_, std::span{data_}.first(count),
                      {.algorithm = std::string{name}}, repeats);
  }

  // Times rings of growing buffers, until one takes long enough to show the bandwidth.
  std::size_t find_long_count() {
    constexpr double kLongEnough = 0.03;
    constexpr std::size_t kMost = std::size_t{1} << 23;
    constexpr std::size_t kLeast = std::size_t{1} << 15;
    std::size_t count = std::max(kLeast, 64 * static_cast<std::size_t>(communicator_.size()));
    while (count < kMost) {
      (void)time("ring", count, 1);  // after a pause, buffers are empty and token buckets are full
      std::vector<double> seconds{time("ring", count, 1)};
      agree(seconds);
      if (seconds[0] > kLongEnough) break;
      count *= 4;
    }
    return count;
  }

  // Times rings whose bytes take about as long as their messages alone. They send more than the
  // burst that a traffic-shaped link lets through at once.
  double overlap_of(double ring_rate, double messages_s, std::size_t least_count,
                    std::size_t most_count) {
    constexpr double kBurstBytes = 512 * 1024;
    constexpr int kRounds = 3;
    constexpr double kMostRepeats = 100;
    const double share = load("ring").share;
    const auto count =
        std::clamp(static_cast<std::size_t>(messages_s * ring_rate / share / sizeof(float)),
                   least_count, most_count);
    const double sent = share * static_cast<double>(count * sizeof(float));
    const auto repeats = static_cast<int>(std::clamp(kBurstBytes / sent, 1.0, kMostRepeats));
    std::vector<double> seconds{kNever};
    for (int round = 0; round <= kRounds; ++round) {
      const double taken = time("ring", count, repeats);
      if (round > 0) seconds[0] = std::min(seconds[0], taken);
    }
    agree(seconds);
    const double transfer_s = sent / ring_rate;
    const double saved = messages_s + transfer_s - seconds[0];
    return std::clamp(saved / std::min(messages_s, transfer_s), 0.0, 1.0);
  }

  // The shortest time of every candidate, because a disturbance can only make a time longer. All
  // are timed in each round, so that a disturbance hits all. The first round, which proves
  // schedules, connects ranks and touches memory, does not count.
  std::vector<double> best_times(std::size_t count, int repeats, int rounds, bool long_ones) {
    std::vector<double> best(candidates_.size(), kNever);
    for (int round = 0; round <= rounds; ++round) {
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (long_ones && !candidates_[i].for_long) continue;
        const double seconds = time(candidates_[i].name, count, repeats);
        if (round > 0) best[i] = std::min(best[i], seconds);
      }
    }
    agree(best);
    return best;
  }

  Communicator& communicator_;
  const Topology& topology_;
  CostConstants constants_;
  std::vector<Candidate> candidates_;
  std::vector<float> data_;
};

}  // namespace

CostConstants measure_network(Communicator& communicator, const Topology& topology) {
  return Measurement{communicator, topology}.run();
}

}  // namespace sluice::engine
