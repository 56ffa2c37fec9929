// random_schedule.h - random schedules whose sends and receives match and do not race. Their values
// mean nothing.
#pragma once

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "sluice/schedule.h"

namespace sluice::simulate {

struct RandomScheduleOptions {
  int ranks = 2;
  bool ring = false;  // in every step, every rank sends to the next one, if that makes no race
};

// Events are made one after the other, so their order is one in which they can take place.
class RandomSchedule {
 public:
  RandomSchedule(std::uint64_t seed, const RandomScheduleOptions& options)
      : random_{seed}, options_{options}, chunks_{1 + below(9)}, buffers_{1 + below(3)} {
    std::vector<std::string> scratch;
    for (int i = 1; i < buffers_; ++i) scratch.push_back("scratch" + std::to_string(i));
    std::vector<std::int64_t> weights;
    for (int c = 0; c < chunks_; ++c) weights.push_back(1 + below(3));
    schedule.algorithm = "random";
    schedule.shape.ranks = options.ranks;
    schedule.programs.assign(static_cast<std::size_t>(options.ranks),
                             Program{Chunking{std::move(weights)}, std::move(scratch)});
    const int steps = 1 + below(8);
    for (int step = 0; step < steps; ++step) add_step();
  }

  Schedule schedule;

 private:
  struct Touched {
    bool read = false;
    bool written = false;
  };

  int below(int bound) {
    return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  Program& program(Rank rank) { return schedule.programs[static_cast<std::size_t>(rank)]; }
  Range random_range() {
    return {.buffer = below(buffers_), .first = below(chunks_), .count = 1 + below(chunks_)};
  }

  void add_step() {
    touched_.assign(schedule.programs.size(),
                    std::vector<Touched>(static_cast<std::size_t>(buffers_ * chunks_)));
    for (Program& each : schedule.programs) each.begin_step();
    if (options_.ring) {
      for (Rank rank = 0; rank < options_.ranks; ++rank) add_event(rank, 1);
    } else if (options_.ranks > 1) {
      for (int left = below(2 * options_.ranks + 1); left > 0; --left)
        add_event(below(options_.ranks), 1 + below(std::min(3, options_.ranks - 1)));
    }
    for (int left = buffers_ > 1 ? below(options_.ranks + 1) : 0; left > 0; --left)
      add_local(below(options_.ranks));
  }

  // Whether a range may be read or written beside the other transfers of the step.
  bool is_free(Rank rank, const Range& range, bool writes) const {
    for (int i = 0; i < range.count; ++i) {
      const Touched& at = position(rank, range, i);
      if (at.written || (writes && at.read)) return false;
    }
    return true;
  }
  void touch(Rank rank, const Range& range, bool writes) {
    for (int i = 0; i < range.count; ++i) {
      Touched& at = const_cast<Touched&>(position(rank, range, i));
      (writes ? at.written : at.read) = true;
    }
  }
  const Touched& position(Rank rank, const Range& range, int i) const {
    const int chunk = (range.first + i) % chunks_;
    return touched_[static_cast<std::size_t>(rank)]
                   [static_cast<std::size_t>(range.buffer) * static_cast<std::size_t>(chunks_) +
                    static_cast<std::size_t>(chunk)];
  }

  // A receive of `to` from some peers, and their sends.
  void add_event(Rank to, int peers) {
    const Range target = random_range();
    if (!is_free(to, target, true)) return;
    std::vector<Rank> sources;
    std::vector<Range> sent;
    for (int i = 0; i < peers; ++i) {
      const Rank from =
          options_.ring ? (to + options_.ranks - 1) % options_.ranks : below(options_.ranks);
      const bool is_new = std::find(sources.begin(), sources.end(), from) == sources.end();
      Range range = target;
      range.buffer = below(buffers_);
      if (from == to || !is_new || !is_free(from, range, false)) continue;
      sources.push_back(from);
      sent.push_back(range);
    }
    if (sources.empty()) return;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      program(sources[i]).send(to, sent[i]);
      touch(sources[i], sent[i], false);
    }
    touch(to, target, true);
    if (sources.size() == 1 && below(2) == 0) {
      program(to).receive_copy(sources.front(), target);
      return;
    }
    const bool adds_own = sources.size() == 1 || below(2) == 0;
    if (adds_own) {
      const int place = below(static_cast<int>(sources.size()) + 1);
      sources.insert(sources.begin() + place, kOwn);
    }
    program(to).receive_reduce(target, sources);
  }

  void add_local(Rank rank) {
    const Range target = random_range();
    std::vector<BufferId> sources;
    for (BufferId buffer = 0; buffer < buffers_; ++buffer) sources.push_back(buffer);
    for (std::size_t i = sources.size(); i > 1; --i)
      std::swap(sources[i - 1], sources[static_cast<std::size_t>(below(static_cast<int>(i)))]);
    if (below(2) == 0) {
      program(rank).local_copy(target, (target.buffer + 1 + below(buffers_ - 1)) % buffers_);
    } else {
      sources.resize(2 + static_cast<std::size_t>(below(buffers_ - 1)));
      program(rank).local_reduce(target, sources);
    }
  }

  base::Random random_;
  RandomScheduleOptions options_;
  int chunks_;
  int buffers_;
  std::vector<std::vector<Touched>> touched_;  // by rank: the transfers of the present step
};

}  // namespace sluice::simulate
