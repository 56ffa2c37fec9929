#include "simulate/step_run.h"

#include <algorithm>
#include <compare>
#include <map>
#include <span>
#include <utility>

#include "simulate/step_flow.h"

namespace sluice::simulate {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFU;
constexpr double kPorts = -1;  // instead of a time: the message waits for its ports

// The rates and latencies of a step's messages, in order of receivers.
struct Pattern {
  std::vector<double> s_per_byte;
  std::vector<double> latency_s;
  std::vector<double> gap_s;
  // The gaps of the messages that its sender begins before this one, and of all in the step.
  std::vector<double> wait_s;
  std::vector<double> burst_s;
  std::vector<Rank> from;
  std::vector<std::uint32_t> of_receiver;  // first message of each rank, and the end
  // For each message, the previous one between the same two ranks in this step, or kNone. Empty if
  // no message has one.
  std::vector<std::uint32_t> behind;
};

// The last message from each rank to the current receiver.
class LastFrom {
 public:
  explicit LastFrom(std::size_t ranks) : last_(ranks, kNone) {}
  std::uint32_t& operator[](Rank from) { return last_[static_cast<std::size_t>(from)]; }

 private:
  std::vector<std::uint32_t> last_;
};

std::vector<std::uint32_t> find_behind(const Pattern& pattern) {
  std::vector<std::uint32_t> behind(pattern.from.size(), kNone);
  bool any = false;
  LastFrom last{pattern.of_receiver.size() - 1};
  for (std::size_t to = 0; to + 1 < pattern.of_receiver.size(); ++to) {
    const std::uint32_t begin = pattern.of_receiver[to];
    const std::uint32_t end = pattern.of_receiver[to + 1];
    for (std::uint32_t m = begin; m < end; ++m) {
      behind[m] = std::exchange(last[pattern.from[m]], m);
      any = any || behind[m] != kNone;
    }
    for (std::uint32_t m = begin; m < end; ++m) last[pattern.from[m]] = kNone;
  }
  return any ? behind : std::vector<std::uint32_t>{};
}

// Messages between the same two ranks run one after the other, each at the sum of their rates.
void join_shares(const std::vector<std::uint32_t>& behind, std::vector<double>& rates) {
  std::vector<std::uint32_t> first(behind.size());
  for (std::uint32_t m = 0; m < behind.size(); ++m) {
    first[m] = behind[m] == kNone ? m : first[behind[m]];
    if (first[m] != m) rates[first[m]] += rates[m];
  }
  for (std::uint32_t m = 0; m < behind.size(); ++m) rates[m] = rates[first[m]];
}

// For every message of a step, the last message between the same two ranks in the step before.
using Predecessors = std::vector<std::uint32_t>;

Predecessors predecessors(const Pattern& before, const Pattern& after) {
  Predecessors found(after.from.size(), kNone);
  LastFrom last{after.of_receiver.size() - 1};
  for (std::size_t to = 0; to + 1 < after.of_receiver.size(); ++to) {
    const std::uint32_t begin = before.of_receiver[to];
    const std::uint32_t end = before.of_receiver[to + 1];
    for (std::uint32_t m = begin; m < end; ++m) last[before.from[m]] = m;
    for (std::uint32_t m = after.of_receiver[to]; m < after.of_receiver[to + 1]; ++m)
      found[m] = last[after.from[m]];
    for (std::uint32_t m = begin; m < end; ++m) last[before.from[m]] = kNone;
  }
  return found;
}

class StepRun {
 public:
  StepRun(const StepTable& table, const FlowNetwork& network, const RunOptions& options)
      : table_{table},
        network_{network},
        fair_share_{network.bytes_per_s()},
        ranks_{static_cast<std::size_t>(table.ranks)},
        flow_{table},
        done_{options.starts_s} {
    done_.resize(ranks_, 0);
    const int chunks = table.chunking.chunks();
    for (int c = 0; c < chunks; ++c) {
      chunk_bytes_.push_back(options.bytes * static_cast<double>(table.chunking.weight(c)) /
                             static_cast<double>(table.chunking.total_weight()));
    }
    // The start of a rank counts as a write of all its buffers.
    for (std::size_t r = 0; r < options.starts_s.size(); ++r) {
      for (BufferId buffer = 0; buffer < table.buffers; ++buffer) {
        flow_.after({static_cast<Rank>(r), buffer, 0, chunks, schedule::AccessKind::Write},
                    options.starts_s[r]);
      }
    }
    out_free_ = done_;
    in_free_ = done_;
  }

  std::vector<double> run() {
    patterns_.resize(static_cast<std::size_t>(table_.patterns));
    for (int step = 0; step < table_.steps; ++step) {
      const int number = table_.pattern[static_cast<std::size_t>(step)];
      Pattern& pattern = patterns_[static_cast<std::size_t>(number)];
      if (pattern.of_receiver.empty()) solve_rates(step, pattern);
      find_earliest_starts(number);
      transfer(step, pattern);
    }
    return done_;
  }

 private:
  // Sums chunk by chunk. With a uniform chunking the sum depends only on the count.
  double bytes_of(std::int32_t first, std::int32_t count) {
    if (table_.chunking.uniform() && count == last_count_) return last_bytes_;
    double bytes = 0;
    auto chunk = static_cast<std::size_t>(first);
    for (std::int32_t i = 0; i < count; ++i) {
      bytes += chunk_bytes_[chunk];
      if (++chunk == chunk_bytes_.size()) chunk = 0;
    }
    last_count_ = count;
    last_bytes_ = bytes;
    return bytes;
  }

  void solve_rates(int step, Pattern& pattern) {
    FlowSet routes;
    pattern.of_receiver.assign(ranks_ + 1, 0);
    for (const StepReceive& receive : table_.receives_of(step)) {
      for (std::uint32_t k = 0; k < receive.source_count; ++k) {
        const Rank from = table_.sources[receive.first_source + k];
        pattern.from.push_back(from);
        pattern.latency_s.push_back(network_.route(from, receive.rank, routes.links));
        pattern.gap_s.push_back(network_.gap_s(from, receive.rank));
        routes.ends.push_back(static_cast<std::uint32_t>(routes.links.size()));
      }
      pattern.of_receiver[static_cast<std::size_t>(receive.rank) + 1] += receive.source_count;
    }
    for (std::size_t r = 0; r < ranks_; ++r) pattern.of_receiver[r + 1] += pattern.of_receiver[r];
    std::vector<double> rates = fair_share_.rates(routes);
    pattern.behind = find_behind(pattern);
    if (!pattern.behind.empty()) join_shares(pattern.behind, rates);
    for (const double rate : rates) pattern.s_per_byte.push_back(1 / rate);
    add_gaps(pattern);
  }

  // Every rank prepares first the message to the next rank after it.
  void add_gaps(Pattern& pattern) const {
    struct InOrder {
      Rank distance;
      std::size_t message;
      auto operator<=>(const InOrder&) const = default;  // NOLINT(modernize-use-nullptr)
    };
    std::vector<std::vector<InOrder>> out(ranks_);
    for (std::size_t to = 0; to < ranks_; ++to) {
      for (std::size_t m = pattern.of_receiver[to]; m < pattern.of_receiver[to + 1]; ++m) {
        const auto from = static_cast<std::size_t>(pattern.from[m]);
        const auto distance = static_cast<Rank>((to + ranks_ - from) % ranks_);
        out[from].push_back({distance, m});
      }
    }
    pattern.wait_s.resize(pattern.from.size());
    pattern.burst_s.resize(pattern.from.size());
    for (std::vector<InOrder>& messages : out) {
      std::sort(messages.begin(), messages.end());
      double gaps_s = 0;
      for (const InOrder& each : messages) {
        pattern.wait_s[each.message] = gaps_s;
        gaps_s += pattern.gap_s[each.message];
      }
      for (const InOrder& each : messages) pattern.burst_s[each.message] = gaps_s;
    }
  }

  // Sets the earliest start of each message. If its sender sent to its receiver in the step before,
  // it starts as soon as that message has left, because the same messages shared the links all the
  // time. Other messages wait until the ports of their ranks are done with that step.
  void find_earliest_starts(int number) {
    const Pattern& pattern = patterns_[static_cast<std::size_t>(number)];
    const std::size_t count = pattern.from.size();
    if (previous_pattern_ == number && pattern.behind.empty()) {
      earliest_.swap(left_);
      left_.resize(count);
      return;
    }
    earliest_.assign(count, kPorts);
    if (previous_pattern_ >= 0) {
      const auto [known, is_new] = predecessors_.try_emplace({previous_pattern_, number});
      if (is_new)
        known->second =
            predecessors(patterns_[static_cast<std::size_t>(previous_pattern_)], pattern);
      for (std::size_t m = 0; m < count; ++m) {
        const std::uint32_t earlier = known->second[m];
        if (earlier != kNone) earliest_[m] = left_[earlier];
      }
    }
    left_.resize(count);
    previous_pattern_ = number;
  }

  void transfer(int step, const Pattern& pattern) {
    std::size_t message = 0;
    next_out_ = out_free_;
    next_in_ = in_free_;
    for (const StepReceive& receive : table_.receives_of(step)) {
      const auto to = static_cast<std::size_t>(receive.rank);
      const double bytes = bytes_of(receive.first, receive.count);
      const StepAccess target = flow_.target_of(receive);
      double free = 0;
      flow_.before(target, [&](double done) { free = std::max(free, done); });
      double arrived = 0;
      for (std::uint32_t k = 0; k < receive.source_count; ++k, ++message) {
        const StepAccess read = flow_.message_of(receive, k);
        const auto from = static_cast<std::size_t>(read.rank);
        const double earliest = earliest_[message];
        double start =
            std::max(free, earliest == kPorts ? std::max(in_free_[to], out_free_[from]) : earliest);
        if (!pattern.behind.empty() && pattern.behind[message] != kNone)
          start = std::max(start, left_[pattern.behind[message]]);
        flow_.before(read, [&](double done) { start = std::max(start, done); });
        // In a stream from one rank to another, the gaps pass while earlier bytes still leave.
        const double wait_s = start > earliest ? pattern.wait_s[message] : 0;
        const double left = start + bytes * pattern.s_per_byte[message] + wait_s;
        const double next = std::max(left, start + pattern.burst_s[message]);
        flow_.after(read, left);
        left_[message] = next;
        next_out_[from] = std::max(next_out_[from], next);
        next_in_[to] = std::max(next_in_[to], next);
        done_[from] = std::max(done_[from], left);
        arrived = std::max(arrived, left + pattern.latency_s[message]);
      }
      arrived += bytes * receive.added * network_.reduce_s_per_byte();
      flow_.after(target, arrived);
      done_[to] = std::max(done_[to], arrived);
    }
    for (const StepLocal& local : table_.locals_of(step)) do_local(local);
    out_free_.swap(next_out_);
    in_free_.swap(next_in_);
  }

  void do_local(const StepLocal& local) {
    double start = 0;
    flow_.for_accesses(local, [&](const StepAccess& access) {
      flow_.before(access, [&](double done) { start = std::max(start, done); });
    });
    const double end =
        start + bytes_of(local.first, local.count) * local.passes * network_.reduce_s_per_byte();
    flow_.for_accesses(local, [&](const StepAccess& access) { flow_.after(access, end); });
    double& done = done_[static_cast<std::size_t>(local.rank)];
    done = std::max(done, end);
  }

  const StepTable& table_;
  const FlowNetwork& network_;
  FairShare fair_share_;
  std::size_t ranks_;
  StepFlow<schedule::Times> flow_;
  std::vector<double> chunk_bytes_;
  std::int32_t last_count_ = 0;
  double last_bytes_ = 0;
  std::vector<double> out_free_, in_free_, next_out_, next_in_;
  std::vector<Pattern> patterns_;
  std::map<std::pair<int, int>, Predecessors> predecessors_;  // between two patterns
  int previous_pattern_ = -1;                                 // pattern of the messages in left_
  std::vector<double> left_;      // when each message has left its sender, and its gap is over
  std::vector<double> earliest_;  // of the current step
  std::vector<double> done_;
};

}  // namespace

std::vector<double> run_steps(const StepTable& table, const FlowNetwork& network,
                              const RunOptions& options) {
  return StepRun{table, network, options}.run();
}

}  // namespace sluice::simulate
