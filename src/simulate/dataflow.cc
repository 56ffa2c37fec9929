// dataflow.cc - dataflow_of(): the operations of a schedule, and which of them each waits for.
#include <map>
#include <utility>

#include "base/format.h"
#include "simulate/event_run.h"

namespace sluice::simulate {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFU;

class Builder {
 public:
  explicit Builder(const Schedule& schedule) : schedule_{schedule} {}

  Result<Dataflow> build() && {
    for (Rank rank = 0; rank < static_cast<Rank>(schedule_.programs.size()); ++rank)
      add_rank(rank, schedule_.programs[static_cast<std::size_t>(rank)]);
    if (Status status = match(); !status.ok()) return status;
    list_followers();
    return std::move(flow_);
  }

 private:
  struct MessageEnd {  // a send, or one source of a receive
    std::uint32_t operation;
    double share;
  };
  struct Chunk {
    std::uint32_t writer = kNone;
    std::vector<std::uint32_t> readers;  // since it was written
  };

  void add_rank(Rank rank, const Program& program) {
    const auto chunks = static_cast<std::size_t>(program.chunking().chunks());
    chunks_.assign(static_cast<std::size_t>(program.buffers()) * chunks, {});
    for (int step = 0; step < program.steps(); ++step) {
      for (const Send& send : program.sends(step)) {
        const std::uint32_t id = begin_operation(rank);
        access(program, send.range, send.range.buffer, id, false);
        sent_[{rank, send.peer}].push_back({id, share_of(program, send.range)});
      }
      for (const Write& receive : program.receives(step)) {
        const std::uint32_t id = begin_operation(rank);
        const double share = share_of(program, receive.range);
        for (const Rank source : program.sources(receive)) {
          if (source == kOwn) continue;
          received_[{source, rank}].push_back({id, share});
          ++flow_.operations[id].messages;
        }
        if (receive.combine == Combine::Reduce)
          flow_.operations[id].added = share * (receive.source_count - 1);
        access(program, receive.range, receive.range.buffer, id, true);
      }
      for (const Write& local : program.locals(step)) {
        const std::uint32_t id = begin_operation(rank);
        for (const BufferId source : program.sources(local)) {
          if (source != local.range.buffer) access(program, local.range, source, id, false);
        }
        flow_.operations[id].added =
            share_of(program, local.range) *
            (local.combine == Combine::Reduce ? local.source_count - 1 : 1);
        access(program, local.range, local.range.buffer, id, true);
      }
    }
  }

  static double share_of(const Program& program, const Range& range) {
    return static_cast<double>(program.chunking().weight(range)) /
           static_cast<double>(program.chunking().total_weight());
  }

  std::uint32_t begin_operation(Rank rank) {
    flow_.operations.push_back({.rank = rank});
    return static_cast<std::uint32_t>(flow_.operations.size() - 1);
  }

  void access(const Program& program, const Range& range, BufferId buffer, std::uint32_t id,
              bool writes) {
    const int count = program.chunking().chunks();
    const std::size_t base = static_cast<std::size_t>(buffer) * static_cast<std::size_t>(count);
    for (int i = 0; i < range.count; ++i) {
      Chunk& chunk = chunks_[base + static_cast<std::size_t>((range.first + i) % count)];
      if (chunk.writer != kNone) add_edge(chunk.writer, id);
      if (writes) {
        for (const std::uint32_t reader : chunk.readers) add_edge(reader, id);
        chunk.readers.clear();
        chunk.writer = id;
      } else {
        chunk.readers.push_back(id);
      }
    }
  }

  // A range of many chunks adds the same edge many times, mostly in a row.
  void add_edge(std::uint32_t first, std::uint32_t then) {
    if (first == then) return;
    if (!edges_.empty() && edges_.back() == std::pair{first, then}) return;
    edges_.emplace_back(first, then);
  }

  Status match() {
    if (sent_.size() != received_.size()) return mismatch();
    for (auto& [pair, sends] : sent_) {
      const auto receives = received_.find(pair);
      if (receives == received_.end() || receives->second.size() != sends.size()) return mismatch();
      for (std::size_t i = 0; i < sends.size(); ++i) {
        flow_.messages.push_back({pair.first, pair.second, sends[i].share, sends[i].operation,
                                  receives->second[i].operation});
      }
    }
    return {};
  }

  Status mismatch() const {
    return {Code::NotProven, base::format("the sends and receives of {} do not match: run sluice "
                                          "verify to see where",
                                          schedule_.algorithm)};
  }

  void list_followers() {
    std::vector<std::uint32_t>& ends = flow_.follower_ends;
    ends.assign(flow_.operations.size(), 0);
    for (const auto& [first, then] : edges_) ++ends[first];
    std::uint32_t sum = 0;
    for (std::uint32_t& end : ends) {
      const std::uint32_t count = end;
      end = sum;
      sum += count;
    }
    flow_.followers.resize(sum);
    for (const auto& [first, then] : edges_) {
      flow_.followers[ends[first]++] = then;
      ++flow_.operations[then].waits_for;
    }
  }

  const Schedule& schedule_;
  Dataflow flow_;
  std::vector<Chunk> chunks_;  // of the current rank
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::map<std::pair<Rank, Rank>, std::vector<MessageEnd>> sent_;
  std::map<std::pair<Rank, Rank>, std::vector<MessageEnd>> received_;
};

}  // namespace

Result<Dataflow> dataflow_of(const Schedule& schedule) { return Builder{schedule}.build(); }

}  // namespace sluice::simulate
