#include "simulate/step_table.h"

#include <algorithm>

#include "base/mix.h"

namespace sluice {
namespace {

// Adds a rank's Program; false where it does not fit. `balance` is zero at the end if every message
// is sent and received in one step: each side adds, or takes away, the mix of who, whom and when.
bool pack(const Program& program, Rank rank, StepTable& table, std::uint64_t& balance) {
  for (int step = 0; step < program.steps(); ++step) {
    for (const Send& send : program.sends(step)) {
      const std::uint64_t key = StepTable::source_key(rank, send.peer, step);
      balance += mixed({key});
      if (send.range.buffer == kUserBuffer) continue;
      if (!table.from_scratch.emplace(key, static_cast<std::uint8_t>(send.range.buffer)).second)
        return false;
    }
    for (const Write& receive : program.receives(step)) {
      StepReceive packed{.step = step,
                         .first = receive.range.first,
                         .count = receive.range.count,
                         .first_source = static_cast<std::uint32_t>(table.sources.size()),
                         .buffer = static_cast<std::uint8_t>(receive.range.buffer)};
      for (const Rank source : program.sources(receive)) {
        if (source == kOwn) continue;
        balance -= mixed({StepTable::source_key(source, rank, step)});
        table.sources.push_back(source);
        ++packed.source_count;
      }
      if (receive.combine == Combine::Reduce)
        packed.added = static_cast<std::uint16_t>(receive.source_count - 1);
      table.receives.push_back(packed);
    }
    for (const Write& local : program.locals(step)) {
      StepLocal packed{.step = step,
                       .first = local.range.first,
                       .count = local.range.count,
                       .first_source = static_cast<std::uint32_t>(table.sources.size()),
                       .source_count = static_cast<std::uint16_t>(local.source_count),
                       .buffer = static_cast<std::uint8_t>(local.range.buffer)};
      for (const BufferId source : program.sources(local)) table.sources.push_back(source);
      if (local.combine == Combine::Reduce)
        packed.passes = static_cast<std::uint8_t>(local.source_count - 1);
      table.locals.push_back(packed);
    }
  }
  table.receive_ends.push_back(table.receives.size());
  table.local_ends.push_back(table.locals.size());
  return true;
}

}  // namespace

std::optional<StepTable> pack_steps(const Algorithm& algorithm, const Shape& shape) {
  constexpr int kMostPackedRanks = 1 << 16;
  if (shape.ranks > kMostPackedRanks) return std::nullopt;
  StepTable table{.ranks = shape.ranks};
  std::uint64_t balance = 0;
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    const Program program = algorithm.program(shape, rank);
    if (rank == 0) {
      table.layout = program.layout();
      const auto ranks = static_cast<std::size_t>(shape.ranks);
      table.receives.reserve(ranks * static_cast<std::size_t>(program.steps()));
      table.sources.reserve(ranks * static_cast<std::size_t>(program.steps()));
    }
    table.steps = std::max(table.steps, program.steps());
    table.buffers = std::max(table.buffers, program.buffers());
    if (!pack(program, rank, table, balance)) return std::nullopt;
  }
  if (balance != 0) return std::nullopt;
  return table;
}

}  // namespace sluice
