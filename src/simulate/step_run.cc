#include "simulate/step_run.h"

#include <algorithm>
#include <map>

#include "base/mix.h"
#include "simulate/fair_share.h"

namespace sluice {
namespace {

// Who sends to whom in a step, and what that gives each message.
struct Pattern {
  std::vector<std::pair<Rank, Rank>> pairs;
  std::vector<double> s_per_byte;
  std::vector<double> latency_s;
};

class StepRun {
 public:
  StepRun(const StepTable& table, const Network& network, const RunOptions& options)
      : table_{table},
        network_{network},
        share_{network.bytes_per_s()},
        ranks_{static_cast<std::size_t>(table.ranks)},
        chunks_{static_cast<std::size_t>(table.layout.chunks())},
        lane_bytes_{options.bytes / options.lanes},
        done_{options.starts_s} {
    done_.resize(ranks_, 0);
    chunk_bytes_.resize(chunks_);
    for (std::size_t c = 0; c < chunks_; ++c) {
      chunk_bytes_[c] = lane_bytes_ *
                        static_cast<double>(table.layout.weight(static_cast<int>(c))) /
                        static_cast<double>(table.layout.total_weight());
    }
    lanes_.resize(static_cast<std::size_t>(options.lanes));
    const std::size_t places = static_cast<std::size_t>(table.buffers) * chunks_;
    for (Lane& lane : lanes_) {
      lane.written.resize(ranks_ * places);
      for (std::size_t r = 0; r < ranks_; ++r)
        std::fill_n(lane.written.begin() + static_cast<std::ptrdiff_t>(r * places), places,
                    done_[r]);
      lane.touched = lane.written;
    }
    out_free_ = done_;
    in_free_ = done_;
  }

  std::vector<double> run() {
    receive_at_.assign(ranks_, 0);
    local_at_.assign(ranks_, 0);
    for (std::size_t r = 1; r < ranks_; ++r) {
      receive_at_[r] = table_.receive_ends[r - 1];
      local_at_[r] = table_.local_ends[r - 1];
    }
    for (int step = 0; step < table_.steps; ++step) {
      const Pattern& pattern = pattern_of(step);
      for (Lane& lane : lanes_) transfer(step, pattern, lane);
      move_on(step);
    }
    return done_;
  }

 private:
  struct Lane {
    std::vector<double> written;  // when each place of each rank last became what it is
    std::vector<double> touched;  // when it was last read or written
  };

  double* places(std::vector<double>& times, std::size_t rank, std::size_t buffer) const {
    return times.data() + (rank * static_cast<std::size_t>(table_.buffers) + buffer) * chunks_;
  }

  template <class Visit>
  void each_chunk(std::int32_t first, std::int32_t count, Visit&& visit) const {
    auto chunk = static_cast<std::size_t>(first);
    for (std::int32_t i = 0; i < count; ++i) {
      visit(chunk);
      if (++chunk == chunks_) chunk = 0;
    }
  }

  template <class Visit>
  void each_receive(int step, Visit&& visit) const {
    for (std::size_t to = 0; to < ranks_; ++to) {
      for (std::size_t i = receive_at_[to];
           i < table_.receive_ends[to] && table_.receives[i].step == step; ++i)
        visit(to, table_.receives[i]);
    }
  }

  const Pattern& pattern_of(int step) {
    pairs_.clear();
    each_receive(step, [&](std::size_t to, const StepReceive& receive) {
      for (std::uint32_t k = 0; k < receive.source_count; ++k)
        pairs_.emplace_back(table_.sources[receive.first_source + k], static_cast<Rank>(to));
    });
    if (last_ != nullptr && last_->pairs == pairs_) return *last_;
    std::uint64_t key = 0;
    for (const auto& [from, to] : pairs_)
      key = mixed({key, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to)});
    std::vector<Pattern>& same_key = patterns_[key];
    for (const Pattern& known : same_key) {
      if (known.pairs == pairs_) return *(last_ = &known);
    }
    return *(last_ = &same_key.emplace_back(solved()));
  }

  Pattern solved() {
    Pattern pattern{.pairs = pairs_};
    FlowSet ways;
    for (const auto& [from, to] : pairs_) {
      pattern.latency_s.push_back(network_.route(from, to, ways.links));
      ways.ends.push_back(static_cast<std::uint32_t>(ways.links.size()));
    }
    for (const double rate : share_.rates(ways)) pattern.s_per_byte.push_back(1 / rate);
    return pattern;
  }

  void transfer(int step, const Pattern& pattern, Lane& lane) {
    std::size_t message = 0;
    next_out_ = out_free_;
    next_in_ = in_free_;
    each_receive(step, [&](std::size_t to, const StepReceive& receive) {
      double* const written = places(lane.written, to, receive.buffer);
      double* const touched = places(lane.touched, to, receive.buffer);
      double bytes = 0;
      double free = in_free_[to];
      each_chunk(receive.first, receive.count, [&](std::size_t chunk) {
        bytes += chunk_bytes_[chunk];
        free = std::max(free, touched[chunk]);
      });
      double arrived = 0;
      for (std::uint32_t k = 0; k < receive.source_count; ++k, ++message) {
        const auto from = static_cast<std::size_t>(table_.sources[receive.first_source + k]);
        const std::size_t buffer = buffer_sent(from, to, step);
        const double* const there = places(lane.written, from, buffer);
        double* const read = places(lane.touched, from, buffer);
        double start = std::max(free, out_free_[from]);
        each_chunk(receive.first, receive.count,
                   [&](std::size_t chunk) { start = std::max(start, there[chunk]); });
        const double left = start + bytes * pattern.s_per_byte[message];
        each_chunk(receive.first, receive.count,
                   [&](std::size_t chunk) { read[chunk] = std::max(read[chunk], left); });
        next_out_[from] = std::max(next_out_[from], left);
        next_in_[to] = std::max(next_in_[to], left);
        done_[from] = std::max(done_[from], left);
        arrived = std::max(arrived, left + pattern.latency_s[message]);
      }
      arrived += bytes * receive.added * network_.reduce_s_per_byte();
      each_chunk(receive.first, receive.count,
                 [&](std::size_t chunk) { written[chunk] = touched[chunk] = arrived; });
      done_[to] = std::max(done_[to], arrived);
    });
    for (std::size_t r = 0; r < ranks_ && !table_.locals.empty(); ++r) {
      for (std::size_t i = local_at_[r]; i < table_.local_ends[r] && table_.locals[i].step == step;
           ++i)
        do_local(r, table_.locals[i], lane);
    }
    out_free_.swap(next_out_);
    in_free_.swap(next_in_);
  }

  void do_local(std::size_t rank, const StepLocal& local, Lane& lane) {
    double* const written = places(lane.written, rank, local.buffer);
    double* const touched = places(lane.touched, rank, local.buffer);
    double bytes = 0;
    double start = 0;
    each_chunk(local.first, local.count, [&](std::size_t chunk) {
      bytes += chunk_bytes_[chunk];
      start = std::max(start, touched[chunk]);
    });
    for (std::uint32_t k = 0; k < local.source_count; ++k) {
      const auto source = static_cast<std::size_t>(table_.sources[local.first_source + k]);
      const double* const there = places(lane.written, rank, source);
      each_chunk(local.first, local.count,
                 [&](std::size_t chunk) { start = std::max(start, there[chunk]); });
    }
    const double end = start + bytes * local.passes * network_.reduce_s_per_byte();
    for (std::uint32_t k = 0; k < local.source_count; ++k) {
      const auto source = static_cast<std::size_t>(table_.sources[local.first_source + k]);
      double* const read = places(lane.touched, rank, source);
      each_chunk(local.first, local.count,
                 [&](std::size_t chunk) { read[chunk] = std::max(read[chunk], end); });
    }
    each_chunk(local.first, local.count,
               [&](std::size_t chunk) { written[chunk] = touched[chunk] = end; });
    done_[rank] = std::max(done_[rank], end);
  }

  std::size_t buffer_sent(std::size_t from, std::size_t to, int step) const {
    if (table_.from_scratch.empty()) return kUserBuffer;
    const auto found = table_.from_scratch.find(
        StepTable::source_key(static_cast<Rank>(from), static_cast<Rank>(to), step));
    return found == table_.from_scratch.end() ? std::size_t{kUserBuffer} : found->second;
  }

  void move_on(int step) {
    for (std::size_t r = 0; r < ranks_; ++r) {
      while (receive_at_[r] < table_.receive_ends[r] &&
             table_.receives[receive_at_[r]].step == step)
        ++receive_at_[r];
      while (local_at_[r] < table_.local_ends[r] && table_.locals[local_at_[r]].step == step)
        ++local_at_[r];
    }
  }

  const StepTable& table_;
  const Network& network_;
  FairShare share_;
  std::size_t ranks_;
  std::size_t chunks_;
  double lane_bytes_;
  std::vector<double> chunk_bytes_;
  std::vector<Lane> lanes_;
  std::vector<double> out_free_, in_free_, next_out_, next_in_;
  std::vector<std::size_t> receive_at_, local_at_;
  std::vector<std::pair<Rank, Rank>> pairs_;
  std::map<std::uint64_t, std::vector<Pattern>> patterns_;
  const Pattern* last_ = nullptr;
  std::vector<double> done_;
};

}  // namespace

std::vector<double> run_steps(const StepTable& table, const Network& network,
                              const RunOptions& options) {
  return StepRun{table, network, options}.run();
}

}  // namespace sluice
