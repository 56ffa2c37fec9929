// step_flow.h - the dataflow of a StepTable, streamed: the rule of schedule/dataflow.h over the
// positions of all ranks.
//
// `Memory` is schedule::Times in a run. A test uses schedule::OperationNumbers.
#pragma once

#include <cstddef>
#include <span>

#include "schedule/dataflow.h"
#include "simulate/step_run.h"

namespace sluice::simulate {

// Chunks of a buffer that an operation reads or writes.
struct StepAccess {
  Rank rank = 0;
  BufferId buffer = kUserBuffer;
  std::int32_t first = 0;
  std::int32_t count = 1;
  schedule::AccessKind kind = schedule::AccessKind::Read;
};

template <class Memory>
class StepFlow {
 public:
  using Done = typename Memory::Done;

  // The table must outlive it.
  explicit StepFlow(const StepTable& table)
      : table_{table},
        ranks_{static_cast<std::size_t>(table.ranks)},
        buffers_{static_cast<std::size_t>(table.buffers)},
        chunks_{static_cast<std::size_t>(table.chunking.chunks())},
        skewed_{table.single_chunks && chunks_ == ranks_ && buffers_ == 1},
        history_{ranks_ * buffers_ * chunks_} {}

  // What a receive writes, and what the message of its k-th peer is read from.
  StepAccess target_of(const StepReceive& receive) const {
    return {receive.rank, receive.buffer, receive.first, receive.count,
            schedule::AccessKind::Write};
  }
  StepAccess message_of(const StepReceive& receive, std::uint32_t k) const {
    const std::size_t source = receive.first_source + k;
    return {table_.sources[source],
            table_.source_buffers.empty() ? kUserBuffer : table_.source_buffers[source],
            receive.first, receive.count, schedule::AccessKind::Read};
  }
  // Calls visit(access) for what a local operation reads and writes.
  template <class Visit>
  void for_accesses(const StepLocal& local, Visit&& visit) const {
    const auto sources = std::span{table_.sources}.subspan(local.first_source, local.source_count);
    const Range range{local.buffer, local.first, local.count};
    const Write write{.range = range, .source_chunk = local.first};
    schedule::for_accesses(
        {schedule::Operation::Kind::Local, local.step, range, 0, &write, sources},
        [&](const Range& each, schedule::AccessKind kind) {
          visit(StepAccess{local.rank, each.buffer, each.first, each.count, kind});
        });
  }

  // Calls wait_for(done) for what the access must wait for.
  template <class Wait>
  void before(const StepAccess& access, Wait&& wait_for) const {
    for_positions(access,
                  [&](std::size_t position) { history_.before(position, access.kind, wait_for); });
  }
  void after(const StepAccess& access, Done done) {
    for_positions(access,
                  [&](std::size_t position) { history_.after(position, access.kind, done); });
  }

 private:
  template <class Visit>
  void for_positions(const StepAccess& access, Visit&& visit) const {
    const auto rank = static_cast<std::size_t>(access.rank);
    auto chunk = static_cast<std::size_t>(access.first);
    for (std::int32_t i = 0; i < access.count; ++i) {
      visit(position_of(rank, static_cast<std::size_t>(access.buffer), chunk));
      if (++chunk == chunks_) chunk = 0;
    }
  }

  // In a ring, each step touches a different chunk of every rank. The skewed order puts these side
  // by side; otherwise cache misses would dominate.
  std::size_t position_of(std::size_t rank, std::size_t buffer, std::size_t chunk) const {
    if (!skewed_) return (rank * buffers_ + buffer) * chunks_ + chunk;
    return (chunk >= rank ? chunk - rank : chunk + chunks_ - rank) * ranks_ + rank;
  }

  const StepTable& table_;
  std::size_t ranks_;
  std::size_t buffers_;
  std::size_t chunks_;
  bool skewed_;
  schedule::AccessHistory<Memory> history_;
};

}  // namespace sluice::simulate
