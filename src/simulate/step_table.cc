// step_table.cc - pack_steps(): the Programs of all ranks, by step.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/random.h"
#include "simulate/step_run.h"

namespace sluice::simulate {
namespace {

// The messages from one rank to another in one step have the same key.
std::uint64_t message_key(Rank from, Rank to, int step) {
  return (static_cast<std::uint64_t>(step) << 34U) | (static_cast<std::uint64_t>(from) << 17U) |
         static_cast<std::uint64_t>(to);
}

// By message_key(), the buffers that messages are read from, in order. Keys of messages from the
// user's buffer alone may be missing.
using SentBuffers = std::unordered_map<std::uint64_t, std::vector<std::uint16_t>>;

// Adds the Program of a rank. Each send adds the hash of its key to `balance`, and each receive
// subtracts it. So `balance` ends at zero if every message is sent and received in the same step.
void pack(const Program& program, Rank rank, StepTable& table, SentBuffers& sent_buffers,
          std::uint64_t& balance) {
  for (int step = 0; step < program.steps(); ++step) {
    const auto sends = program.sends(step);
    const bool from_scratch = std::any_of(sends.begin(), sends.end(), [](const Send& send) {
      return send.range.buffer != kUserBuffer;
    });
    for (const Send& send : sends) {
      const std::uint64_t key = message_key(rank, send.peer, step);
      balance += base::mixed({key});
      if (from_scratch) sent_buffers[key].push_back(static_cast<std::uint16_t>(send.range.buffer));
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
        balance -= base::mixed({message_key(source, rank, step)});
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

// Sets source_buffers. The k-th message of a key belongs to the k-th source with that key.
void find_source_buffers(const SentBuffers& sent, StepTable& table) {
  if (sent.empty()) return;
  table.source_buffers.assign(table.sources.size(), kUserBuffer);
  std::unordered_map<std::uint64_t, std::size_t> received;
  for (const StepReceive& receive : table.receives) {
    for (std::uint32_t k = 0; k < receive.source_count; ++k) {
      const std::size_t source = receive.first_source + k;
      const std::uint64_t key = message_key(table.sources[source], receive.rank, receive.step);
      const auto buffers = sent.find(key);
      if (buffers != sent.end()) table.source_buffers[source] = buffers->second[received[key]++];
    }
  }
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
  if (shape.ranks > kMostPackedRanks || algorithm.equal_chunks) return std::nullopt;
  StepTable table{.ranks = shape.ranks};
  std::uint64_t balance = 0;
  SentBuffers sent_buffers;
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
    pack(program, rank, table, sent_buffers, balance);
  }
  if (balance != 0) return std::nullopt;
  std::vector<std::int32_t> sources;
  sort_by_step(table.receives, table.receive_ends, table.steps, table.sources, sources);
  sort_by_step(table.locals, table.local_ends, table.steps, table.sources, sources);
  table.sources.swap(sources);
  find_source_buffers(sent_buffers, table);
  number_patterns(table);
  return table;
}

}  // namespace sluice::simulate
