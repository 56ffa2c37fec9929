// marks.h - the marks of a schedule's operations, from the schedule itself.
//
// Marks are what a rank must know of the whole schedule to run its own Program. A sum is *whole* if
// it has the contributions of all ranks: a mean is divided there. A send is a *push* if the receive
// whose sum it carries may store the sum directly in the peer's buffer instead. That receive reads
// the peer's part from the same place to which the peer would copy the sum. So:
//  - The send waits only for that receive, which is a Reduce of the same range of the user's
//    buffer, and the peer is one of its sources.
//  - The peer sent its part from this range, and copies the sum to this range.
//  - The copy waits only for that part and for operations that the part waits for. So nothing else
//    at the peer still reads or writes the range.
//
// Built-in algorithms have marks in closed form (Marks in sluice/schedule.h), so that a rank builds
// only its own Program. prove() compares them with these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/event_graph.h"
#include "sluice/schedule.h"
#include "sluice/verify.h"

namespace sluice::schedule {

// The marks of a Program's operations, by their numbers (dataflow.h).
struct OperationMarks {
  std::vector<bool> whole_sums;
  std::vector<bool> pushes;

  friend bool operator==(const OperationMarks&, const OperationMarks&) = default;
};

// The marks of a Program by their closed form.
OperationMarks apply(const Marks& marks, const Program& program);

// The marks of all ranks. REQUIRES: the schedule is proven, and `order` is from graph.order().
std::vector<OperationMarks> find_marks(const Schedule& schedule, const EventGraph& graph,
                                       std::span<const std::uint32_t> order);

// The marks of all ranks in packed_bytes() bytes, and those of one rank out of them. REQUIRES: the
// marks are of this schedule.
std::string pack(const std::vector<OperationMarks>& marks);
OperationMarks unpack(const std::string& packed, const Schedule& schedule, Rank rank);
std::size_t packed_bytes(const Schedule& schedule);

// As verify(). Sets `marks` if the schedule is proven.
Proof verify_and_mark(const Schedule& schedule, std::vector<OperationMarks>& marks);

}  // namespace sluice::schedule
