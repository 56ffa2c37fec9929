// event_graph.h - the events of a schedule, and which of them wait for each other.
//
// An event is a receive together with its matching sends, or a local operation. At each of its
// ranks it waits for the operations that dataflow.h names. It also waits for the previous event of
// every (sender, receiver) pair that it belongs to: this is a window of 1, the strictest one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::schedule {

// A range of a rank's buffer that an event reads.
struct Operand {
  Rank rank = 0;
  BufferId buffer = 0;
  std::int32_t first = 0;  // chunk; as many are read as the event writes
};

struct Event {
  Rank rank = 0;  // whose buffer it writes
  std::int32_t step = 0;
  bool local = false;
  const Write* write = nullptr;
  std::uint32_t first_operand = 0;  // the operands are the sources, in order
};

// "chunk 3", "chunks 3 to 5".
std::string chunks_of(const Range& range, int chunks);

class EventGraph {
 public:
  struct Wait {
    std::uint32_t before;
    std::uint32_t event;
  };

  // REQUIRES: the schedule passed the checks of verify.cc, and outlives the graph.
  explicit EventGraph(const Schedule& schedule);

  // "", or the error: a send without a receive, a receive without a send, or two that differ in
  // their chunks. With equal chunks only their number counts.
  const std::string& mismatch() const { return mismatch_; }

  // The events in an order in which no event waits for a later one. A cycle of waits is a deadlock.
  // In that case the order is empty, and deadlock() names two events of the cycle.
  // REQUIRES: mismatch() is "".
  std::vector<std::uint32_t> order();
  const std::string& deadlock() const { return deadlock_; }

  // Rank by rank, and in program order within a rank: the receives of a step, then its local
  // operations.
  std::span<const Event> events() const { return events_; }
  // Which event waits for which; the same pair may be listed more than once.
  std::span<const Wait> waits() const { return waits_; }
  // The event of a rank's k-th send, in program order from 0.
  const Event& event_of_send(Rank rank, std::size_t send) const {
    return events_[send_event_[static_cast<std::size_t>(rank)][send]];
  }
  std::span<const Operand> operands(const Event& event) const {
    return std::span{operands_}.subspan(event.first_operand, event.write->source_count);
  }
  // For each operand of a receive, the index of its message among the sends of its rank. Has no
  // meaning for a rank's own values.
  std::span<const std::uint32_t> sends_of(const Event& event) const {
    return std::span{operand_sends_}.subspan(event.first_operand, event.write->source_count);
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
  std::vector<std::uint32_t> operand_sends_;            // by operand
  std::vector<std::vector<std::uint32_t>> send_event_;  // by rank, then by send in program order
  std::vector<Wait> waits_;
  std::string mismatch_;
  std::string deadlock_;
};

}  // namespace sluice::schedule
