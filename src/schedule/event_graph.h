// event_graph.h - which operations wait for which.
//
// An event is a receive together with the sends matched to it, or a local operation. It waits for
// the events before it that touch, at any of its ranks, a place that one of the two writes, and for
// the previous event of every (sender, receiver) pair it belongs to (a window of 1, the strictest).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::schedule {

// A buffer at a rank that an event reads.
struct Operand {
  Rank rank = 0;
  BufferId buffer = 0;
};

struct Event {
  Rank rank = 0;  // where it writes
  std::int32_t step = 0;
  bool local = false;
  const Write* write = nullptr;
  std::uint32_t first_operand = 0;  // one for each source, in order
};

// "chunk 3", "chunks 3 to 5".
std::string chunks_of(const Range& range, int chunks);

class EventGraph {
 public:
  struct Wait {
    std::uint32_t before;
    std::uint32_t event;
  };

  // REQUIRES: verify.cc has found the schedule well-formed. The schedule must outlive the graph.
  explicit EventGraph(const Schedule& schedule);

  // A send without its receive, a receive without its send, or two that do not fit; or "".
  const std::string& mismatch() const { return mismatch_; }

  // The events in an order in which none waits for a later one. A cycle is a deadlock: then the
  // order is empty and deadlock() says who waits for whom.
  // REQUIRES: mismatch() is "".
  std::vector<std::uint32_t> order();
  const std::string& deadlock() const { return deadlock_; }

  // Rank after rank, each in program order: a step's receives, then its local operations.
  std::span<const Event> events() const { return events_; }
  // The event that a rank's send belongs to; sends counted in program order.
  const Event& event_of_send(Rank rank, std::size_t send) const {
    return events_[send_event_[static_cast<std::size_t>(rank)][send]];
  }
  std::span<const Operand> operands(const Event& event) const {
    return std::span{operands_}.subspan(event.first_operand, event.write->source_count);
  }
  std::string describe(const Event& event) const;

 private:
  void list_events();
  void match();
  void link_pairs();
  void link_dataflow();
  void wait(std::uint32_t event, std::uint32_t before);
  void explain_cycle(const std::vector<std::uint32_t>& waits_left);

  const Schedule& schedule_;
  std::vector<Event> events_;
  std::vector<Operand> operands_;
  std::vector<std::vector<std::uint32_t>> send_event_;  // of each rank, by send in program order
  std::vector<Wait> waits_;
  std::string mismatch_;
  std::string deadlock_;
};

}  // namespace sluice::schedule
