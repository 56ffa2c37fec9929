#include "engine/plan.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/format.h"
#include "schedule/dataflow.h"
#include "schedule/event_graph.h"

namespace sluice::engine {
namespace {

using Indices = std::vector<std::uint32_t>;

// Calls a function for each operation of a Program, in order.
template <class OnSend, class OnReceive, class OnLocal>
void for_operations(const Program& program, OnSend&& on_send, OnReceive&& on_receive,
                    OnLocal&& on_local) {
  for (int step = 0; step < program.steps(); ++step) {
    for (const Send& send : program.sends(step)) on_send(send, step);
    for (const Write& receive : program.receives(step)) on_receive(receive, step);
    for (const Write& local : program.locals(step)) on_local(local, step);
  }
}

// For every operation, the earlier operations that it conflicts with and must wait for.
std::vector<Indices> conflicts_before(const Program& program) {
  const schedule::OperationWaits waits{program};
  std::vector<Indices> before;
  for (std::uint32_t i = 0; i < waits.operations(); ++i)
    before.emplace_back(waits.of(i).begin(), waits.of(i).end());
  return before;
}

// The operations of a rank's Program with their numbers, and the operations that each waits for.
struct RankOperations {
  explicit RankOperations(const Program& program) : before{conflicts_before(program)} {
    std::uint32_t index = 0;
    for_operations(
        program, [&](const Send& send, int) { sends.emplace_back(&send, index++); },
        [&](const Write& receive, int) { writes[&receive] = index++; },
        [&](const Write& local, int) { writes[&local] = index++; });
  }
  std::vector<Indices> before;
  std::vector<std::pair<const Send*, std::uint32_t>> sends;
  std::map<const Write*, std::uint32_t> writes;
};

}  // namespace

Plan::Plan(const Schedule& schedule, Rank rank)
    : chunking_{schedule.programs[static_cast<std::size_t>(rank)].chunking()},
      scratch_buffers_{schedule.programs[static_cast<std::size_t>(rank)].buffers() - 1},
      sends_to_(schedule.programs.size()),
      receives_from_(schedule.programs.size()) {
  const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
  list_instructions(program);
  link_followers(conflicts_before(program));
  schedule::EventGraph graph{schedule};
  find_whole_sums(schedule, rank, graph);
  find_pushes(schedule, rank, graph);
}

Plan Plan::renumbered(const std::vector<Rank>& ranks) const {
  Plan plan = *this;
  const auto renumber = [&](Rank position) { return ranks[static_cast<std::size_t>(position)]; };
  for (Instruction& instruction : plan.instructions_) {
    instruction.peer = renumber(instruction.peer);
    if (instruction.kind != Instruction::Kind::Receive) continue;
    for (std::uint32_t i = 0; i < instruction.source_count; ++i) {
      std::int32_t& source = plan.sources_[instruction.first_source + i];
      if (source != kOwn) source = renumber(source);
    }
  }
  for (std::size_t position = 0; position < ranks.size(); ++position) {
    const auto rank = static_cast<std::size_t>(ranks[position]);
    plan.sends_to_[rank] = sends_to_[position];
    plan.receives_from_[rank] = receives_from_[position];
  }
  return plan;
}

void Plan::list_instructions(const Program& program) {
  const auto add_write = [&](const Write& write, int step, Instruction::Kind kind) {
    const auto sources = program.sources(write);
    instructions_.push_back({.kind = kind,
                             .combine = write.combine,
                             .step = step,
                             .range = write.range,
                             .first_source = static_cast<std::uint32_t>(sources_.size()),
                             .source_count = write.source_count});
    sources_.insert(sources_.end(), sources.begin(), sources.end());
  };
  const auto index = [&] { return static_cast<std::uint32_t>(instructions_.size()); };
  for_operations(
      program,
      [&](const Send& send, int step) {
        sends_to_[static_cast<std::size_t>(send.peer)].push_back(index());
        instructions_.push_back({.kind = Instruction::Kind::Send,
                                 .step = step,
                                 .peer = send.peer,
                                 .range = send.range});
      },
      [&](const Write& receive, int step) {
        for (const Rank source : program.sources(receive)) {
          if (source != kOwn) receives_from_[static_cast<std::size_t>(source)].push_back(index());
        }
        add_write(receive, step, Instruction::Kind::Receive);
      },
      [&](const Write& local, int step) { add_write(local, step, Instruction::Kind::Local); });
}

void Plan::link_followers(const std::vector<Indices>& before) {
  std::vector<Indices> followers(instructions_.size());
  for (std::uint32_t i = 0; i < before.size(); ++i) {
    instructions_[i].waits = static_cast<std::uint32_t>(before[i].size());
    for (const std::uint32_t earlier : before[i]) followers[earlier].push_back(i);
  }
  for (std::size_t i = 0; i < followers.size(); ++i) {
    instructions_[i].first_follower = static_cast<std::uint32_t>(followers_.size());
    instructions_[i].follower_count = static_cast<std::uint32_t>(followers[i].size());
    followers_.insert(followers_.end(), followers[i].begin(), followers[i].end());
  }
}

void Plan::find_whole_sums(const Schedule& schedule, Rank rank, schedule::EventGraph& graph) {
  if (!is_reduction(schedule.shape.collective)) return;
  const auto chunks = static_cast<std::size_t>(chunking_.chunks());
  const auto buffers = static_cast<std::size_t>(scratch_buffers_) + 1;
  // The number of contributions in every chunk of every rank, as the schedule runs.
  std::vector<int> held(schedule.programs.size() * buffers * chunks, 0);
  const auto at = [&](Rank r, BufferId buffer, std::size_t chunk) -> int& {
    return held[(static_cast<std::size_t>(r) * buffers + static_cast<std::size_t>(buffer)) *
                    chunks +
                chunk];
  };
  for (Rank r = 0; r < schedule.shape.ranks; ++r) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) at(r, kUserBuffer, chunk) = 1;
  }
  std::map<const Write*, bool> whole_sums;
  for (const std::uint32_t e : graph.order()) {
    const schedule::Event& event = graph.events()[e];
    bool whole = event.write->combine == Combine::Reduce;
    for (int i = 0; i < event.write->range.count; ++i) {
      const std::size_t chunk =
          (static_cast<std::size_t>(event.write->range.first) + static_cast<std::size_t>(i)) %
          chunks;
      int sum = 0;
      for (const schedule::Operand& operand : graph.operands(event))
        sum += at(operand.rank, operand.buffer, chunk);
      at(event.rank, event.write->range.buffer, chunk) = sum;
      whole = whole && sum == schedule.shape.ranks;
    }
    if (event.rank == rank) whole_sums[event.write] = whole;
  }
  std::uint32_t index = 0;
  for_operations(
      schedule.programs[static_cast<std::size_t>(rank)], [&](const Send&, int) { ++index; },
      [&](const Write& receive, int) { instructions_[index++].whole_sum = whole_sums[&receive]; },
      [&](const Write& local, int) { instructions_[index++].whole_sum = whole_sums[&local]; });
}

void Plan::find_pushes(const Schedule& schedule, Rank rank, const schedule::EventGraph& graph) {
  std::map<Rank, RankOperations> operations;
  const auto operations_of = [&](Rank r) -> const RankOperations& {
    return operations.try_emplace(r, schedule.programs[static_cast<std::size_t>(r)]).first->second;
  };
  const RankOperations& own = operations_of(rank);
  for (const auto& [write, index] : own.writes) {
    Instruction& receive = instructions_[index];
    const bool sums_in_place = receive.kind == Instruction::Kind::Receive &&
                               receive.combine == Combine::Reduce &&
                               receive.range.buffer == kUserBuffer;
    if (!sums_in_place) continue;
    receive.first_push = static_cast<std::uint32_t>(pushes_.size());
    const auto from = sources(receive);
    for (std::size_t s = 0; s < own.sends.size(); ++s) {
      // A push replaces a send of this result that waits only for the sum and goes to a source of
      // the sum.
      const auto& [send, send_index] = own.sends[s];
      const bool of_result = send->range == receive.range &&
                             own.before[send_index] == Indices{index} &&
                             std::find(from.begin(), from.end(), send->peer) != from.end();
      if (!of_result) continue;
      // The peer must copy the result to the same range.
      const Write* const copy = graph.event_of_send(rank, s).write;
      if (copy->combine != Combine::Copy || copy->range != receive.range) continue;
      // The peer must have sent its part from that range, and its copy must wait only for that send
      // and for operations that the send waits for.
      const RankOperations& peer = operations_of(send->peer);
      for (std::size_t g = 0; g < peer.sends.size(); ++g) {
        const Send* const part = peer.sends[g].first;
        const std::uint32_t part_index = peer.sends[g].second;
        if (graph.event_of_send(send->peer, g).write != write || part->range != receive.range)
          continue;
        const Indices& before_copy = peer.before[peer.writes.at(copy)];
        const Indices& before_part = peer.before[part_index];
        const bool free =
            std::all_of(before_copy.begin(), before_copy.end(), [&](std::uint32_t earlier) {
              return earlier == part_index || std::find(before_part.begin(), before_part.end(),
                                                        earlier) != before_part.end();
            });
        if (free) pushes_.push_back(send_index);
      }
    }
    receive.push_count = static_cast<std::uint32_t>(pushes_.size()) - receive.first_push;
  }
}

Result<std::shared_ptr<const Plan>> proven_plan(const Algorithm& algorithm, const Shape& shape,
                                                Rank rank) {
  using Key = std::tuple<std::string_view, int, Collective, int, std::vector<int>, Rank, int, Rank>;
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<const Plan>> plans;
  const Key key{algorithm.name, algorithm.version, shape.collective, shape.ranks,
                shape.grid,     shape.root,        shape.segments,   rank};
  const std::lock_guard lock{mutex};
  if (const auto known = plans.find(key); known != plans.end()) return known->second;
  if (Proof proof = prove(algorithm, shape); !proof.proven) {
    return Status{Code::NotProven, base::format("{} is not proven and will not run: {}",
                                                algorithm.name, proof.reason)};
  }
  auto plan = std::make_shared<const Plan>(build_schedule(algorithm, shape), rank);
  plans.emplace(key, plan);
  return std::shared_ptr<const Plan>{plan};
}

}  // namespace sluice::engine
