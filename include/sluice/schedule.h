// schedule.h - a collective as data.
//
// A Program says what one rank sends and receives, step by step; a Schedule is the Programs of all
// ranks of a shape. Executor, simulator, cost model, printer and verifier read these types, so an
// algorithm is written once. docs/execution-model.md says what a Program means; in short:
//
//  - A buffer is cut into the chunks of a Layout. Every rank has the user's buffer and may have
//    scratch buffers, all cut alike, so a value never changes its chunk number.
//  - A step holds sends, receives and local operations. A receive takes one message from every peer
//    among its sources; its target becomes a copy of the message, or the sum of its sources in the
//    listed order, the target's own old value standing where kOwn is listed.
//  - Order is by dataflow: two operations of a rank that touch the same chunk of the same buffer,
//    one of them writing, take place in program order; nothing else does.
//
// Invariants (verify() proves them):
//  (1) in one step no transfer touches a (buffer, chunk) that another transfer of that rank writes;
//  (2) a Reduce adds its sources in the listed order, so results are the same bits every time;
//  (3) every send has its receive, in order, and no window of outstanding segments can deadlock.
// Thread-safety: immutable once built; share freely.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/status.h"

namespace sluice {

using Rank = std::int32_t;
using BufferId = std::int32_t;

inline constexpr BufferId kUserBuffer = 0;  // scratch buffers follow: 1, 2, ...
inline constexpr Rank kOwn = -1;            // among a receive's sources: the target's own old value

enum class Collective : std::uint8_t { AllReduce, ReduceScatter, AllGather, Broadcast, Reduce };

inline constexpr Collective kCollectives[] = {Collective::AllReduce, Collective::ReduceScatter,
                                              Collective::AllGather, Collective::Broadcast,
                                              Collective::Reduce};

// "all_reduce", "reduce_scatter", ...
std::string_view name(Collective collective);

// What a collective is asked of: enough for an algorithm to write every rank's Program.
struct Shape {
  Collective collective = Collective::AllReduce;
  int ranks = 1;
  std::vector<int> grid;  // ranks of each node, nodes in rank order; empty: not given
  Rank root = 0;          // of Broadcast and Reduce
  int segments = 1;       // pipelined pieces a tree; algorithms without trees ignore it

  friend bool operator==(const Shape&, const Shape&) = default;
};

// Chunks first, first + 1, ... of one buffer, modulo the chunk count.
struct Range {
  BufferId buffer = kUserBuffer;
  std::int32_t first = 0;
  std::int32_t count = 1;

  friend bool operator==(const Range&, const Range&) = default;
};

// How a buffer is cut into chunks: chunk c has weight(c) of total_weight(), by default one each.
class Chunking {
 public:
  explicit Chunking(int chunks) : chunks_{chunks} {}
  explicit Chunking(std::vector<std::int64_t> weights);

  int chunks() const { return chunks_; }
  std::int64_t weight(int chunk) const;
  std::int64_t weight(const Range& range) const;
  std::int64_t total_weight() const;
  bool uniform() const { return ends_.empty(); }

  // First element of a chunk when the buffer has `count` elements; chunk == chunks() gives count.
  std::int64_t begin(int chunk, std::int64_t count) const;

  friend bool operator==(const Chunking&, const Chunking&) = default;

 private:
  int chunks_;
  std::vector<std::int64_t> ends_;  // running sums of the weights; empty when all are one
};

struct Send {
  Rank peer = 0;
  Range range;

  friend bool operator==(const Send&, const Send&) = default;
};

enum class Combine : std::uint8_t { Copy, Reduce };

// A receive, or a local operation: range = the one source, or the sum of the sources in order.
// The sources themselves are read with Program::sources: ranks (or kOwn) for a receive, buffers for
// a local operation, which takes the same chunks of each.
struct Write {
  Combine combine = Combine::Copy;
  Range range;
  std::uint32_t first_source = 0;
  std::uint32_t source_count = 0;
};

class Program {
 public:
  explicit Program(Chunking chunking, std::vector<std::string> scratch = {});

  // Writing: begin_step(), then the step's operations in any order of kinds. Messages between a
  // pair of ranks are matched in the order in which each side lists them.
  void begin_step();
  void send(Rank peer, Range range);
  void receive_copy(Rank peer, Range range);
  void receive_reduce(Range range, std::span<const Rank> sources);
  void local_copy(Range range, BufferId source);
  void local_reduce(Range range, std::span<const BufferId> sources);

  // Reading.
  const Chunking& chunking() const { return chunking_; }
  const std::vector<std::string>& scratch() const { return scratch_; }
  int buffers() const { return 1 + static_cast<int>(scratch_.size()); }
  int steps() const { return static_cast<int>(steps_.size()); }
  std::span<const Send> sends(int step) const;
  std::span<const Write> receives(int step) const;
  std::span<const Write> locals(int step) const;
  std::span<const std::int32_t> sources(const Write& write) const;

  // The same operations in the same order, however they were written down.
  friend bool operator==(const Program& a, const Program& b);

 private:
  struct StepBegin {
    std::uint32_t send, receive, local;
  };
  Write write(Combine combine, Range range, std::span<const std::int32_t> sources);

  Chunking chunking_;
  std::vector<std::string> scratch_;
  std::vector<StepBegin> steps_;
  std::vector<Send> sends_;
  std::vector<Write> receives_;
  std::vector<Write> locals_;
  std::vector<std::int32_t> sources_;
};

struct Schedule {
  std::string algorithm;  // who wrote it; for a supplied file, the name it gives itself
  Shape shape;
  bool ordered = false;  // declares that every sum is rank 0 + rank 1 + ..., left to right
  std::vector<Program> programs;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Chunks of reduce_scatter and all_gather belong to ranks: rank r has the r-th n-th of them.
// REQUIRES: chunking.chunks() is a multiple of ranks.
Rank owner_of_chunk(const Chunking& chunking, int ranks, int chunk);

// Whether the collective combines what ranks bring: not all_gather and broadcast.
bool is_reduction(Collective collective);
// Whether one rank is its source or its target: broadcast and reduce.
bool has_root(Collective collective);
// Whether parts of the buffer belong to ranks: reduce_scatter and all_gather.
bool has_owners(Collective collective);
// Whether a rank brings something for a chunk, and whether it is promised the result.
bool brings(const Shape& shape, const Chunking& chunking, Rank rank, int chunk);
bool is_promised(const Shape& shape, const Chunking& chunking, Rank rank, int chunk);

// Writes a schedule as text (docs/schedule-format.md): header, hash, and a line for every send,
// receive and local operation. parse_schedule() returns an equal schedule. Throws Error
// (InvalidArgument) before it writes anything if the text form cannot express the schedule:
// programs that differ in chunks or scratch, or a rank, buffer or chunk that does not exist.
void print_schedule(std::ostream& out, const Schedule& schedule);

// Reads the text form. An error names line and column; memory is bounded whatever the input. The
// hash line may be absent (a file written by hand); when present it must agree.
Result<Schedule> parse_schedule(std::istream& in);

// The hash of the schedule's canonical text: equal schedules, equal hashes. Throws as
// print_schedule does.
std::uint64_t hash_schedule(const Schedule& schedule);

}  // namespace sluice
