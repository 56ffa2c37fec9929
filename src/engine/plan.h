// plan.h - a rank's Program, compiled for execution.
//
// The instructions are the Program's operations. Each has the instructions that must finish before
// it, by the same conflicts that verify() orders by. Two facts come from the whole schedule. The
// first is which sums are whole: a mean is divided there. The second is which results can be
// pushed: a rank that adds up a range from its peers' buffers stores the sum in those buffers too,
// where the schedule would send the sum back to them.
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sluice/algorithms.h"
#include "sluice/schedule.h"

namespace sluice::schedule {
class EventGraph;
}

namespace sluice::engine {

struct Instruction {
  enum class Kind : std::uint8_t { Send, Receive, Local };

  Kind kind = Kind::Send;
  Combine combine = Combine::Copy;
  bool whole_sum = false;  // the result has every rank's contribution
  std::int32_t step = 0;
  Rank peer = 0;  // the receiver of a send
  Range range;
  std::uint32_t first_source = 0;  // of a receive: ranks or kOwn; of a local operation: buffers
  std::uint32_t source_count = 0;
  std::uint32_t first_follower = 0;  // instructions that wait for this one
  std::uint32_t follower_count = 0;
  std::uint32_t waits = 0;       // instructions that this one waits for
  std::uint32_t first_push = 0;  // of a receive: sends that it may replace by storing its result
  std::uint32_t push_count = 0;
};

class Plan {
 public:
  // REQUIRES: the schedule is proven.
  Plan(const Schedule& schedule, Rank rank);

  // The same plan with other rank numbers: ranks[i] is the rank at position i of the schedule.
  Plan renumbered(const std::vector<Rank>& ranks) const;

  const Chunking& chunking() const { return chunking_; }
  int scratch_buffers() const { return scratch_buffers_; }
  std::span<const Instruction> instructions() const { return instructions_; }
  std::span<const std::int32_t> sources(const Instruction& instruction) const {
    return std::span{sources_}.subspan(instruction.first_source, instruction.source_count);
  }
  std::span<const std::uint32_t> followers(const Instruction& instruction) const {
    return std::span{followers_}.subspan(instruction.first_follower, instruction.follower_count);
  }
  std::span<const std::uint32_t> pushes(const Instruction& instruction) const {
    return std::span{pushes_}.subspan(instruction.first_push, instruction.push_count);
  }
  // The sends to a peer and the receives that list it, in order. Messages are matched in this
  // order.
  std::span<const std::uint32_t> sends_to(Rank peer) const {
    return sends_to_[static_cast<std::size_t>(peer)];
  }
  std::span<const std::uint32_t> receives_from(Rank peer) const {
    return receives_from_[static_cast<std::size_t>(peer)];
  }

 private:
  void list_instructions(const Program& program);
  void link_followers(const std::vector<std::vector<std::uint32_t>>& before);
  void find_whole_sums(const Schedule& schedule, Rank rank, schedule::EventGraph& graph);
  void find_pushes(const Schedule& schedule, Rank rank, const schedule::EventGraph& graph);

  Chunking chunking_;
  int scratch_buffers_;
  std::vector<Instruction> instructions_;
  std::vector<std::int32_t> sources_;
  std::vector<std::uint32_t> followers_;
  std::vector<std::uint32_t> pushes_;
  std::vector<std::vector<std::uint32_t>> sends_to_;
  std::vector<std::vector<std::uint32_t>> receives_from_;
};

// The plan of a shape. Its schedule is proven at first use. Proofs and plans are kept for the whole
// process. Fails when the schedule cannot be proven.
Result<std::shared_ptr<const Plan>> proven_plan(const Algorithm& algorithm, const Shape& shape,
                                                Rank rank);

}  // namespace sluice::engine
