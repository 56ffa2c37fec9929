// schedule.h - a collective as data.
//
// A Program lists what one rank sends and receives, step by step; a Schedule is the Programs of all
// ranks of a shape. Engine, simulator, cost model, printer and verifier read these types, so an
// algorithm is written once. docs/execution-model.md defines the meaning of a Program; in short:
//
//  - Every rank has the user's buffer and may have scratch buffers. All are cut into chunks in the
//    same way. A value keeps its chunk number, unless the schedule declares equal chunks.
//  - A step has sends, receives and local operations. A receive takes one message from every peer
//    among its sources. Its target becomes a copy of the message, or the sum of its sources in the
//    listed order, where kOwn stands for the old value of the target.
//  - Order is by dataflow: two operations of a rank take place in program order if they touch the
//    same chunk of the same buffer and at least one of them writes it. There is no other order.
//
// Invariants (verify() proves them):
//  (1) in one step no transfer touches a (buffer, chunk) that another transfer of that rank writes;
//  (2) a Reduce adds its sources in the listed order, so results are the same bits every time;
//  (3) every send has its receive, in order, and no window of outstanding segments can deadlock.
// Thread-safety: a finished Program or Schedule is immutable; threads may share it.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/status.h"
#include "sluice/version.h"

namespace sluice {

using Rank = std::int32_t;
using BufferId = std::int32_t;

inline constexpr BufferId kUserBuffer = 0;  // scratch buffers follow: 1, 2, ...
inline constexpr Rank kOwn = -1;  // among the sources of a receive: the old value of the target

enum class Collective : std::uint8_t { AllReduce, ReduceScatter, AllGather, Broadcast, Reduce };

inline constexpr Collective kCollectives[] = {Collective::AllReduce, Collective::ReduceScatter,
                                              Collective::AllGather, Collective::Broadcast,
                                              Collective::Reduce};

// "all_reduce", "reduce_scatter", ...
SLUICE_API std::string_view name(Collective collective);

// The input of an algorithm: all that it needs to write the Program of every rank.
struct Shape {
  Collective collective = Collective::AllReduce;
  int ranks = 1;
  std::vector<int> grid;  // ranks of each node, nodes in rank order; empty: not given
  Rank root = 0;          // of Broadcast and Reduce
  int segments = 1;       // pipelined pieces of each tree; algorithms without trees ignore it

  friend bool operator==(const Shape&, const Shape&) = default;
};

// Chunks first, first + 1, ... of one buffer, modulo the buffer's number of chunks.
struct Range {
  BufferId buffer = kUserBuffer;
  std::int32_t first = 0;
  std::int32_t count = 1;

  friend bool operator==(const Range&, const Range&) = default;
};

// How a buffer is cut into chunks: chunk c has the share weight(c) / total_weight() of the
// elements. By default, every weight is 1.
class SLUICE_API Chunking {
 public:
  explicit Chunking(int chunks) : chunks_{chunks} {}
  explicit Chunking(std::vector<std::int64_t> weights);

  int chunks() const { return chunks_; }
  std::int64_t weight(int chunk) const;
  std::int64_t weight(const Range& range) const;
  std::int64_t total_weight() const;
  bool uniform() const { return ends_.empty(); }

  // The first element of a chunk when the buffer has `count` elements. begin(chunks(), count) is
  // `count`.
  std::int64_t begin(int chunk, std::int64_t count) const;

  friend bool operator==(const Chunking&, const Chunking&) = default;

 private:
  int chunks_;
  std::vector<std::int64_t> ends_;  // running sums of the weights; empty when all are equal
};

struct Send {
  Rank peer = 0;
  Range range;

  friend bool operator==(const Send&, const Send&) = default;
};

enum class Combine : std::uint8_t { Copy, Reduce };

// A receive or a local operation. The range becomes a copy of its only source (Copy), or the sum of
// its sources in order (Reduce). Program::sources() returns the sources: ranks or kOwn for a
// receive, buffers for a local operation. Program::source_range() says what it reads of a buffer.
struct Write {
  Combine combine = Combine::Copy;
  Range range;
  std::uint32_t first_source = 0;
  std::uint32_t source_count = 0;
  std::int32_t source_chunk = 0;  // of a local operation: the first chunk that it reads
};

// The operations of one rank, step by step.
class SLUICE_API Program {
 public:
  // `scratch` names the scratch buffers; their ids are 1, 2, ... `scratch_chunks` are their numbers
  // of chunks; empty: all are cut like the user's buffer.
  explicit Program(Chunking chunking, std::vector<std::string> scratch = {},
                   std::vector<int> scratch_chunks = {});

  // To write a program, call begin_step(), then add the operations of the step; sends, receives and
  // local operations may be mixed. The k-th message that a rank sends to another is the k-th that
  // the other receives from it. These functions check nothing; verify() does.
  void begin_step();
  void send(Rank peer, Range range);
  void receive_copy(Rank peer, Range range);
  void receive_reduce(Range range, std::span<const Rank> sources);
  // A local operation reads the chunks of its range, or as many from `source_chunk` on. A Reduce
  // that lists its own buffer always reads the old value of the range there.
  void local_copy(Range range, BufferId source);
  void local_copy(Range range, BufferId source, std::int32_t source_chunk);
  void local_reduce(Range range, std::span<const BufferId> sources);
  void local_reduce(Range range, std::span<const BufferId> sources, std::int32_t source_chunk);

  // To read a program. Steps count from 0.
  const Chunking& chunking() const { return chunking_; }
  const std::vector<std::string>& scratch() const { return scratch_; }
  int buffers() const { return 1 + static_cast<int>(scratch_.size()); }
  // The number of chunks of a buffer, and of all buffers. REQUIRES: there is such a buffer.
  int chunks(BufferId buffer) const;
  std::int64_t all_chunks() const;
  // The numbers of chunks of the scratch buffers; empty: all are cut like the user's buffer.
  const std::vector<int>& scratch_chunks() const { return scratch_chunks_; }
  int steps() const { return static_cast<int>(steps_.size()); }
  std::span<const Send> sends(int step) const;
  std::span<const Write> receives(int step) const;
  std::span<const Write> locals(int step) const;
  std::span<const std::int32_t> sources(const Write& write) const;
  // What a local operation reads of a source.
  static Range source_range(const Write& local, BufferId source);
  // Whether the buffer and the chunks of a range exist, and it has at least one chunk.
  bool contains(const Range& range) const;

  // Whether both have the same operations in the same order.
  friend bool operator==(const Program& a, const Program& b);

 private:
  struct StepBegin {
    std::uint32_t send, receive, local;
  };
  Write write(Combine combine, Range range, std::span<const std::int32_t> sources,
              std::int32_t source_chunk);

  Chunking chunking_;
  std::vector<std::string> scratch_;
  std::vector<int> scratch_chunks_;
  std::vector<StepBegin> steps_;
  std::vector<Send> sends_;
  std::vector<Write> receives_;
  std::vector<Write> locals_;
  std::vector<std::int32_t> sources_;
};

// What a rank must know of the whole schedule to run its own Program, as a closed form over the
// Program's operations. An empty function says no to all of them.
struct Marks {
  // Whether a Reduce of this step and range gives the sum of all ranks' contributions. A mean is
  // divided there.
  std::function<bool(int step, const Range& range)> whole_sum = nullptr;
  // Whether a send of this step and range carries a sum back to one of its sources, and the receive
  // that computes the sum may store it there directly. docs/execution-model.md has the conditions.
  std::function<bool(int step, const Range& range)> push = nullptr;
};

// The programs of all ranks of a shape.
struct Schedule {
  std::string algorithm;  // that built it; in a file, the name in its header
  Shape shape;
  bool ordered = false;           // declares that every sum is rank 0 + rank 1 + ..., left to right
  std::vector<Program> programs;  // by rank
  // Declares that all chunks have the same size, so values may change their chunk numbers. The
  // number of elements must then be a multiple of the number of chunks.
  bool equal_chunks = false;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// The rank that a chunk belongs to in reduce_scatter and all_gather: the chunks are cut into as
// many equal runs as there are ranks, and rank r owns run r. REQUIRES: chunking.chunks() is a
// multiple of ranks.
SLUICE_API Rank owner_of_chunk(const Chunking& chunking, int ranks, int chunk);

// Whether the collective adds up contributions: all_reduce, reduce_scatter and reduce do.
SLUICE_API bool is_reduction(Collective collective);
// Whether one rank is the source or the target: broadcast and reduce.
SLUICE_API bool has_root(Collective collective);
// Whether parts of the buffer belong to ranks: reduce_scatter and all_gather.
SLUICE_API bool has_owners(Collective collective);
// Whether a rank has an input for a chunk, and whether it must have the result at the end.
SLUICE_API bool contributes(const Shape& shape, const Chunking& chunking, Rank rank, int chunk);
SLUICE_API bool receives_result(const Shape& shape, const Chunking& chunking, Rank rank, int chunk);

// Writes a schedule as text (docs/schedule-format.md): header, hash, and one line for each send,
// receive and local operation. parse_schedule() returns an equal schedule. Throws Error
// (InvalidArgument), before it writes anything, if the text form cannot express the schedule: its
// programs differ in chunks or scratch, or name a rank, buffer or chunk that does not exist.
SLUICE_API void print_schedule(std::ostream& out, const Schedule& schedule);

// Reads the text form. An error names line and column (InvalidInput). Memory is bounded for every
// input. The hash line is optional, for files written by hand; if present, it must match.
SLUICE_API Result<Schedule> parse_schedule(std::istream& in);

// The hash of the schedule's text without the hash line: equal schedules have equal hashes. Throws
// Error in the same cases as print_schedule().
SLUICE_API std::uint64_t hash_schedule(const Schedule& schedule);

}  // namespace sluice
