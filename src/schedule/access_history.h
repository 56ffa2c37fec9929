// access_history.h - which operations of one rank touch the same place, and so wait for each other.
//
// A place is a chunk of a buffer. A read waits for the last write of its place; a write waits for
// that too, and for every read since. The verifier orders events by this, the engine instructions.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::schedule {

class AccessHistory {
 public:
  explicit AccessHistory(const Program& program)
      : chunks_{static_cast<std::size_t>(program.chunking().chunks())},
        places_(static_cast<std::size_t>(program.buffers()) * chunks_) {}

  // Operations are told in program order. Calls wait_for(operation) for each that must be done
  // before this one, possibly more than once and possibly with the operation itself.
  template <class WaitFor>
  void read(const Range& range, BufferId buffer, std::uint32_t operation, WaitFor&& wait_for) {
    for_places(range, buffer, [&](Place& place) {
      if (place.writer != kNone) wait_for(place.writer);
      reads_.push_back({operation, place.last_read});
      place.last_read = static_cast<std::uint32_t>(reads_.size() - 1);
    });
  }
  template <class WaitFor>
  void write(const Range& range, std::uint32_t operation, WaitFor&& wait_for) {
    for_places(range, range.buffer, [&](Place& place) {
      if (place.writer != kNone) wait_for(place.writer);
      for (std::uint32_t read = place.last_read; read != kNone; read = reads_[read].previous)
        wait_for(reads_[read].operation);
      place = {operation, kNone};
    });
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Place {
    std::uint32_t writer = kNone;
    std::uint32_t last_read = kNone;  // since the write: the head of a list in reads_
  };
  struct Read {
    std::uint32_t operation;
    std::uint32_t previous;
  };

  template <class Visit>
  void for_places(const Range& range, BufferId buffer, Visit&& visit) {
    for (int i = 0; i < range.count; ++i) {
      visit(places_[static_cast<std::size_t>(buffer) * chunks_ +
                    static_cast<std::size_t>(range.first + i) % chunks_]);
    }
  }

  std::size_t chunks_;
  std::vector<Place> places_;
  std::vector<Read> reads_;
};

}  // namespace sluice::schedule
