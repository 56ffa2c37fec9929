// predict_time.cc - predict_time(): the times of all ranks, step by step.
//
// A step needs for each rank only the time at which it has received everything, and those at which
// its two ports are free. Its messages get the rate that the busiest of their links leaves them.
// A time depends on the size of the buffer, so it is a line: seconds and seconds per byte. Which of
// two lines is later also depends on the size, so the lines are found for some sizes, and between
// them the later of two lines holds.
//
// Two kinds of steps are not followed one by one:
//  - In equal steps in which every rank sends one message and receives one (a ring), a chunk pays
//    the mean hop. But a link cannot carry more than a message at a time: the slowest hop is the
//    other bound.
//  - In a pipeline, all pieces but the first take the time of the busiest link or rank.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "algorithms/fabric.h"
#include "sluice/algorithms.h"

namespace sluice {
namespace algorithms {
namespace {

constexpr int kSizes = 11;
// In the simulator, the busiest link of a full pipeline is idle for up to a sixth of the time:
// pieces that run ahead share it with pieces that ranks wait for. Half of that is expected here.
constexpr double kFullPipeline = 1.08;

constexpr std::array<double, kSizes> powers_of_eight() {
  std::array<double, kSizes> all{};
  double bytes = 64;  // to 64 GiB
  for (double& each : all) {
    each = bytes;
    bytes *= 8;
  }
  return all;
}
constexpr std::array<double, kSizes> kBytes = powers_of_eight();

TimeLine operator+(const TimeLine& a, const TimeLine& b) {
  return {a.seconds + b.seconds, a.s_per_byte + b.s_per_byte};
}
TimeLine operator*(double factor, const TimeLine& line) {
  return {factor * line.seconds, factor * line.s_per_byte};
}

// A time for each size.
struct Times {
  std::array<TimeLine, kSizes> lines{};

  // Becomes the later of itself and another time, for each size.
  template <class LineOfSize>
  void raise(LineOfSize&& other) {
    for (std::size_t i = 0; i < kSizes; ++i) {
      const TimeLine line = other(i);
      if (line.at(kBytes[i]) > lines[i].at(kBytes[i])) lines[i] = line;
    }
  }
};

const TimeLine& later(const TimeLine& a, const TimeLine& b, double bytes) {
  return a.at(bytes) < b.at(bytes) ? b : a;
}

// What a step puts on each link and each rank, as shares of the buffer and as seconds.
struct StepTotals {
  int repeat = 1;
  std::vector<double> link_shares;
  std::vector<double> gaps_s;  // of the messages that a rank sends
};

// The totals of one piece of a pipeline.
struct PipelineTotals {
  StepTotals all;
  // Whether some rank sends two messages of a piece to the same peer, as in two trees.
  bool pairs_repeat = false;
};

// The first pass over the traffic: the totals of each step, and of each pipeline.
class Totals final : public TrafficSink {
 public:
  explicit Totals(const Fabric& fabric) : fabric_{fabric} {
    step_ = empty();
    pipeline_.all = empty();
  }

  void message(Rank from, Rank to, double share) override {
    links_.clear();
    (void)fabric_.route(from, to, links_);
    const double gap_s = fabric_.gap_s(from, to);
    for (StepTotals* const totals : {&step_, &pipeline_.all}) {
      for (const LinkId link : links_) totals->link_shares[static_cast<std::size_t>(link)] += share;
      totals->gaps_s[static_cast<std::size_t>(from)] += gap_s;
    }
    if (in_pipeline_ && !pairs_.insert({from, to}).second) pipeline_.pairs_repeat = true;
  }
  void reduce(Rank, double) override {}
  void end_step(int repeat) override {
    step_.repeat = repeat;
    steps.push_back(std::exchange(step_, empty()));
  }
  bool begin_pipeline(int) override {
    in_pipeline_ = true;
    pipeline_ = {.all = empty()};
    pairs_.clear();
    return true;
  }
  void end_pipeline() override {
    in_pipeline_ = false;
    pipelines.push_back(pipeline_);
  }

  std::vector<StepTotals> steps;
  std::vector<PipelineTotals> pipelines;

 private:
  StepTotals empty() const {
    const auto ranks = static_cast<std::size_t>(fabric_.ranks());
    return {1, std::vector<double>(fabric_.bytes_per_s().size()), std::vector<double>(ranks)};
  }

  const Fabric& fabric_;
  StepTotals step_;
  PipelineTotals pipeline_;
  bool in_pipeline_ = false;
  std::set<std::pair<Rank, Rank>> pairs_;
  std::vector<LinkId> links_;
};

// The times of all ranks.
struct RankTimes {
  explicit RankTimes(std::size_t ranks) : ready(ranks), out_free(ranks), in_free(ranks) {}

  std::vector<Times> ready;     // it has received and reduced everything so far
  std::vector<Times> out_free;  // its messages have left
  std::vector<Times> in_free;   // messages to it have left their senders

  Times latest() const {
    Times last;
    for (const std::vector<Times>* const times : {&ready, &out_free}) {
      for (const Times& each : *times) last.raise([&](std::size_t i) { return each.lines[i]; });
    }
    return last;
  }
};

struct Message {
  Rank from, to;
  double latency_s;
  TimeLine transfer;  // with all messages of the step that share its links or its sender
};

struct Step {
  std::vector<Message> messages;
  std::vector<double> reduced;  // s_per_byte of each rank
};

// The second pass: the times.
class Clocks final : public TrafficSink {
 public:
  Clocks(const Fabric& fabric, double reduce_s_per_byte, const Totals& totals)
      : fabric_{fabric},
        reduce_s_per_byte_{reduce_s_per_byte},
        totals_{totals},
        ranks_{static_cast<std::size_t>(fabric.ranks())},
        reduced_(ranks_),
        now_{ranks_},
        next_{ranks_} {}

  void message(Rank from, Rank to, double /*share*/) override {
    const StepTotals& step = totals_.steps[step_];
    links_.clear();
    Message sent{from, to, fabric_.route(from, to, links_), {}};
    sent.transfer = {wait_for_gaps(step, from, to), slowest_link(step)};
    if (step.repeat > 1) {
      repeated_.push_back(sent);
    } else {
      send(sent);
    }
    if (!in_pipeline_) return;
    // Once the pipeline is full, the messages of all steps share the links, and each waits for the
    // gap of the piece before it.
    sent.transfer = {step.gaps_s[static_cast<std::size_t>(from)],
                     slowest_link(totals_.pipelines[pipeline_].all)};
    piece_.back().messages.push_back(sent);
  }

  void reduce(Rank rank, double share) override {
    reduced_[static_cast<std::size_t>(rank)] += share * reduce_s_per_byte_;
  }

  void end_step(int repeat) override {
    if (repeat > 1 && is_permutation()) {
      go_round(repeat);
    } else {
      for (int i = 0; i < repeat; ++i) {
        for (const Message& each : repeated_) send(each);
        finish_step();
      }
    }
    if (in_pipeline_) {
      piece_.back().reduced = reduced_;
      piece_.emplace_back();
    }
    std::fill(reduced_.begin(), reduced_.end(), 0);
    repeated_.clear();
    ++step_;
  }

  bool begin_pipeline(int pieces) override {
    in_pipeline_ = true;
    pieces_ = pieces;
    piece_.assign(1, {});
    begin_ = now_;
    return true;
  }

  void end_pipeline() override {
    piece_.pop_back();
    in_pipeline_ = false;
    const PipelineTotals& totals = totals_.pipelines[pipeline_++];
    TimeLine busiest_link;
    for (std::size_t i = 0; i < totals.all.link_shares.size(); ++i) {
      busiest_link.s_per_byte =
          std::max(busiest_link.s_per_byte, totals.all.link_shares[i] / fabric_.bytes_per_s()[i]);
    }
    busiest_link = kFullPipeline * busiest_link;
    TimeLine busiest_rank;
    for (const double gaps_s : totals.all.gaps_s)
      busiest_rank.seconds = std::max(busiest_rank.seconds, gaps_s);
    // Messages between two ranks stay in order. So a piece waits for messages of earlier pieces
    // that come out of the other tree. Such a chain of waits has one step of slack.
    const Times chain = totals.pairs_repeat ? time_of_a_piece() : Times{};
    const double of_a_step = 1.0 / static_cast<double>(piece_.size() + 1);
    for (std::size_t i = 0; i < kSizes; ++i) {
      const TimeLine period = later(later(busiest_link, busiest_rank, kBytes[i]),
                                    of_a_step * chain.lines[i], kBytes[i]);
      for (Times& ready : now_.ready) ready.lines[i] = ready.lines[i] + (pieces_ - 1) * period;
    }
  }

  // The time at which the last rank is done.
  TimeCurve last() const {
    const Times last = now_.latest();
    return {{last.lines.begin(), last.lines.end()}};
  }

 private:
  // A rank prepares its messages in the order of the ranks after it: the one to the rank before it
  // waits for the gaps of all others.
  double wait_for_gaps(const StepTotals& step, Rank from, Rank to) const {
    const auto ranks = static_cast<int>(ranks_);
    const double others_s = step.gaps_s[static_cast<std::size_t>(from)] - fabric_.gap_s(from, to);
    const int distance = (to - from + ranks) % ranks;
    return ranks > 2 ? others_s * (distance - 1) / (ranks - 2) : 0;
  }

  double slowest_link(const StepTotals& totals) const {
    double s_per_byte = 0;
    for (const LinkId link : links_) {
      const auto i = static_cast<std::size_t>(link);
      s_per_byte = std::max(s_per_byte, totals.link_shares[i] / fabric_.bytes_per_s()[i]);
    }
    return s_per_byte;
  }

  void send(const Message& sent) {
    const auto from = static_cast<std::size_t>(sent.from);
    const auto to = static_cast<std::size_t>(sent.to);
    Times left;
    for (std::size_t i = 0; i < kSizes; ++i) {
      const double bytes = kBytes[i];
      left.lines[i] = later(later(now_.ready[from].lines[i], now_.out_free[from].lines[i], bytes),
                            now_.in_free[to].lines[i], bytes) +
                      sent.transfer;
    }
    const auto line = [&](std::size_t i) { return left.lines[i]; };
    next_.out_free[from].raise(line);
    next_.in_free[to].raise(line);
    next_.ready[to].raise([&](std::size_t i) {
      return left.lines[i] + TimeLine{sent.latency_s, 0};
    });
  }

  void finish_step() {
    for (std::size_t r = 0; r < ranks_; ++r) {
      now_.ready[r].raise([&](std::size_t i) { return next_.ready[r].lines[i]; });
      if (reduced_[r] > 0) {
        for (TimeLine& line : now_.ready[r].lines) line.s_per_byte += reduced_[r];
      }
      now_.out_free[r].raise([&](std::size_t i) { return next_.out_free[r].lines[i]; });
      now_.in_free[r].raise([&](std::size_t i) { return next_.in_free[r].lines[i]; });
    }
  }

  // How long a piece takes in the full pipeline.
  Times time_of_a_piece() {
    const RankTimes after_first = std::exchange(now_, begin_);
    next_ = RankTimes{ranks_};
    for (Step& step : piece_) {
      for (const Message& each : step.messages) send(each);
      reduced_.swap(step.reduced);
      finish_step();
    }
    std::fill(reduced_.begin(), reduced_.end(), 0);
    Times took = now_.latest();
    const Times begin = begin_.latest();
    for (std::size_t i = 0; i < kSizes; ++i) took.lines[i] = took.lines[i] + (-1) * begin.lines[i];
    now_ = after_first;
    return took;
  }

  bool is_permutation() {
    message_from_.assign(ranks_, -1);
    std::vector<bool> receives(ranks_);
    for (std::size_t m = 0; m < repeated_.size(); ++m) {
      const auto from = static_cast<std::size_t>(repeated_[m].from);
      const auto to = static_cast<std::size_t>(repeated_[m].to);
      if (message_from_[from] >= 0 || receives[to]) return false;
      message_from_[from] = static_cast<std::int32_t>(m);
      receives[to] = true;
    }
    return std::all_of(repeated_.begin(), repeated_.end(), [&](const Message& each) {
      return receives[static_cast<std::size_t>(each.from)];
    });
  }

  // Each cycle of a permutation is a ring, whose chunks move on by one rank in each step.
  void go_round(int repeat) {
    std::vector<bool> done(ranks_);
    for (const Message& first : repeated_) {
      if (done[static_cast<std::size_t>(first.from)]) continue;
      std::vector<std::size_t> ring;
      TimeLine sum;  // of all hops
      double latencies_s = 0;
      TimeLine slowest;  // the hop that is busy longest
      Times begin;
      for (auto r = static_cast<std::size_t>(first.from); !done[r];) {
        done[r] = true;
        ring.push_back(r);
        const Message& each = repeated_[static_cast<std::size_t>(message_from_[r])];
        sum = sum + each.transfer + TimeLine{each.latency_s, reduced_[r]};
        latencies_s += each.latency_s;
        slowest.s_per_byte = std::max(slowest.s_per_byte, each.transfer.s_per_byte);
        for (const std::vector<Times>* const times : {&now_.ready, &now_.out_free, &now_.in_free})
          begin.raise([&](std::size_t i) { return (*times)[r].lines[i]; });
        r = static_cast<std::size_t>(each.to);
      }
      const double part = 1.0 / static_cast<double>(ring.size());
      const TimeLine by_hops = repeat * part * sum;
      const TimeLine by_slowest = repeat * slowest + TimeLine{part * latencies_s, 0};
      for (std::size_t i = 0; i < kSizes; ++i)
        begin.lines[i] = begin.lines[i] + later(by_hops, by_slowest, kBytes[i]);
      for (const std::size_t r : ring) now_.ready[r] = begin;
    }
  }

  const Fabric& fabric_;
  double reduce_s_per_byte_;
  const Totals& totals_;
  std::size_t ranks_;
  std::size_t step_ = 0;
  std::vector<LinkId> links_;               // of the current message
  std::vector<Message> repeated_;           // the messages of a repeated step
  std::vector<std::int32_t> message_from_;  // of each rank in repeated_; -1: none
  std::vector<double> reduced_;             // s_per_byte of each rank in the current step
  RankTimes now_;                           // after the last step
  RankTimes next_;                          // after the current one

  bool in_pipeline_ = false;
  std::size_t pipeline_ = 0;
  int pieces_ = 1;
  std::vector<Step> piece_;
  RankTimes begin_{0};
};

}  // namespace
}  // namespace algorithms

TimeCurve predict_time(const Algorithm& algorithm, const Shape& shape, const Topology& topology,
                       const CostConstants& constants) {
  const CostConstants own = constants.for_algorithm(algorithm.name);
  const algorithms::Fabric fabric{own, topology};
  algorithms::Totals totals{fabric};
  algorithm.traffic(shape, totals);
  algorithms::Clocks clocks{fabric, own.reduce_s_per_byte, totals};
  algorithm.traffic(shape, clocks);
  return clocks.last();
}

}  // namespace sluice
