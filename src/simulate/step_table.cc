// step_table.cc - pack_steps(): the Programs of all ranks, by step.
#include <algorithm>
#include <map>
#include <utility>

#include "base/random.h"
#include "simulate/step_run.h"

namespace sluice::simulate {
namespace {

// Adds the Program of a rank. Returns false if it does not fit. Each send adds the hash of (sender,
// receiver, step) to `balance`, and each receive subtracts it. So `balance` ends at zero if every
// message is sent and received in the same step.
bool pack(const Program& program, Rank rank, StepTable& table, std::uint64_t& balance) {
  for (int step = 0; step < program.steps(); ++step) {
    for (const Send& send : program.sends(step)) {
      const std::uint64_t key = StepTable::source_key(rank, send.peer, step);
      balance += base::mixed({key});
      if (send.range.buffer == kUserBuffer) continue;
      if (!table.from_scratch.emplace(key, static_cast<std::uint16_t>(send.range.buffer)).second)
        return false;
    }
    for (const Write& receive : program.receives(step)) {
      StepReceive packed{.step = step,
                         .rank = rank,
                         .first = receive.range.first,
                         .count = receive.range.count,
                         .first_source = static_cast<std::uint32_t>(table.sources.size()),
                         .buffer = static_cast<std::uint16_t>(receive.range.buffer)};
      for (const Rank source : program.sources(receive)) {
        if (source == kOwn) continue;
        balance -= base::mixed({StepTable::source_key(source, rank, step)});
        table.sources.push_back(source);
        ++packed.source_count;
      }
      if (receive.combine == Combine::Reduce)
        packed.added = static_cast<std::uint16_t>(receive.source_count - 1);
      table.single_chunks = table.single_chunks && packed.count == 1;
      table.receives.push_back(packed);
    }
    for (const Write& local : program.locals(step)) {
      StepLocal packed{.step = step,
                       .rank = rank,
                       .first = local.range.first,
                       .count = local.range.count,
                       .first_source = static_cast<std::uint32_t>(table.sources.size()),
                       .source_count = static_cast<std::uint16_t>(local.source_count),
                       .buffer = static_cast<std::uint16_t>(local.range.buffer)};
      for (const BufferId source : program.sources(local)) table.sources.push_back(source);
      if (local.combine == Combine::Reduce)
        packed.passes = static_cast<std::uint16_t>(local.source_count - 1);
      table.locals.push_back(packed);
    }
  }
  return true;
}

// Sorts the items and their sources by step.
template <class Item>
void sort_by_step(std::vector<Item>& items, std::vector<std::size_t>& ends, int steps,
                  const std::vector<std::int32_t>& sources, std::vector<std::int32_t>& sorted) {
  ends.assign(static_cast<std::size_t>(steps), 0);
  std::vector<std::size_t> source_begins(static_cast<std::size_t>(steps) + 1, 0);
  for (const Item& item : items) {
    ++ends[static_cast<std::size_t>(item.step)];
    source_begins[static_cast<std::size_t>(item.step) + 1] += item.source_count;
  }
  std::size_t begin = 0;
  for (std::size_t& end : ends) begin += std::exchange(end, begin);
  source_begins[0] = sorted.size();
  for (std::size_t s = 1; s < source_begins.size(); ++s) source_begins[s] += source_begins[s - 1];
  sorted.resize(source_begins.back());
  std::vector<Item> by_step(items.size());
  for (Item& item : items) {
    const auto step = static_cast<std::size_t>(item.step);
    const auto old = sources.begin() + item.first_source;
    item.first_source = static_cast<std::uint32_t>(source_begins[step]);
    std::copy_n(old, item.source_count, sorted.begin() + item.first_source);
    source_begins[step] += item.source_count;
    by_step[ends[step]++] = item;
  }
  items.swap(by_step);
}

void number_patterns(StepTable& table) {
  std::map<std::uint64_t, std::vector<int>> known;  // steps, by a hash of their messages
  const auto same = [&](int a, int b) {
    const auto x = table.receives_of(a);
    const auto y = table.receives_of(b);
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const auto& p, const auto& q) {
      const auto from = table.sources.begin();
      return p.rank == q.rank &&
             std::equal(from + p.first_source, from + p.first_source + p.source_count,
                        from + q.first_source, from + q.first_source + q.source_count);
    });
  };
  for (int step = 0; step < table.steps; ++step) {
    if (step > 0 && same(step, step - 1)) {
      table.pattern.push_back(table.pattern.back());
      continue;
    }
    std::uint64_t key = 0;
    for (const StepReceive& receive : table.receives_of(step)) {
      key = base::mixed({key, static_cast<std::uint64_t>(receive.rank)});
      for (std::uint32_t k = 0; k < receive.source_count; ++k)
        key =
            base::mixed({key, static_cast<std::uint64_t>(table.sources[receive.first_source + k])});
    }
    std::vector<int>& same_hash = known[key];
    const auto found = std::find_if(same_hash.begin(), same_hash.end(),
                                    [&](int other) { return same(step, other); });
    if (found != same_hash.end()) {
      table.pattern.push_back(table.pattern[static_cast<std::size_t>(*found)]);
    } else {
      table.pattern.push_back(table.patterns++);
      same_hash.push_back(step);
    }
  }
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
      table.chunking = program.chunking();
      const auto ranks = static_cast<std::size_t>(shape.ranks);
      table.receives.reserve(ranks * static_cast<std::size_t>(program.steps()));
      table.sources.reserve(ranks * static_cast<std::size_t>(program.steps()));
    }
    table.steps = std::max(table.steps, program.steps());
    table.buffers = std::max(table.buffers, program.buffers());
    if (!pack(program, rank, table, balance)) return std::nullopt;
  }
  if (balance != 0) return std::nullopt;
  std::vector<std::int32_t> sources;
  sort_by_step(table.receives, table.receive_ends, table.steps, table.sources, sources);
  sort_by_step(table.locals, table.local_ends, table.steps, table.sources, sources);
  table.sources.swap(sources);
  number_patterns(table);
  return table;
}

}  // namespace sluice::simulate
