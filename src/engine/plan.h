// plan.h - a rank's Program, compiled for execution.
//
// The instructions are the Program's operations. Each has the instructions that must finish before
// it, by the rule of schedule/dataflow.h. The Program's marks (schedule/marks.h) say which sums are
// whole: a mean is divided there. They also say which results can be pushed: a rank that adds up a
// range from its peers' buffers stores the sum in those buffers too, where the schedule would send
// the sum back to them. So a rank builds nothing but its own Program.
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schedule/dataflow.h"
#include "schedule/marks.h"
#include "sluice/algorithms.h"
#include "sluice/schedule.h"

namespace sluice::engine {

struct Instruction {
  using Kind = schedule::Operation::Kind;

  Kind kind = Kind::Send;
  Combine combine = Combine::Copy;
  bool whole_sum = false;  // the result has every rank's contribution
  std::int32_t step = 0;
  Rank peer = 0;  // the receiver of a send
  Range range;
  std::uint32_t first_source = 0;  // of a receive: ranks or kOwn; of a local operation: buffers
  std::uint32_t source_count = 0;
  std::int32_t source_chunk = 0;     // of a local operation: as in Write
  std::uint32_t first_follower = 0;  // instructions that wait for this one
  std::uint32_t follower_count = 0;
  std::uint32_t waits = 0;       // instructions that this one waits for
  std::uint32_t first_push = 0;  // of a receive: sends that it may replace by storing its result
  std::uint32_t push_count = 0;
};

class Plan {
 public:
  // `ranks`: of the schedule. Only a proven schedule may be executed.
  Plan(const Program& program, const schedule::OperationMarks& marks, int ranks);

  // The same plan with other rank numbers: ranks[i] is the rank at position i of the schedule.
  Plan renumbered(const std::vector<Rank>& ranks) const;

  // How each buffer is cut into chunks; the first is the user's.
  std::span<const Chunking> chunkings() const { return chunkings_; }
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
  void list_instructions(const Program& program, const schedule::OperationMarks& marks);
  void link_followers(const schedule::OperationWaits& waits);
  void list_pushes(const schedule::OperationWaits& waits, const std::vector<bool>& pushes);

  std::vector<Chunking> chunkings_;
  std::vector<Instruction> instructions_;
  std::vector<std::int32_t> sources_;
  std::vector<std::uint32_t> followers_;
  std::vector<std::uint32_t> pushes_;
  std::vector<std::vector<std::uint32_t>> sends_to_;
  std::vector<std::vector<std::uint32_t>> receives_from_;
};

// A rank's plan for a shape, from its own Program and its marks: by their closed form, or for a
// schedule from a file those of the verdict. Plans are kept for the whole process. Whether the
// schedule is proven is another question: see proofs.h.
std::shared_ptr<const Plan> plan_of(const Algorithm& algorithm, const Shape& shape, Rank rank,
                                    const std::string& packed_marks = {});

}  // namespace sluice::engine
