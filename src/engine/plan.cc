#include "engine/plan.h"

#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "algorithms/schedule_file.h"

namespace sluice::engine {

Plan::Plan(const Program& program, const schedule::OperationMarks& marks, int ranks)
    : chunkings_{program.chunking()},
      sends_to_(static_cast<std::size_t>(ranks)),
      receives_from_(static_cast<std::size_t>(ranks)) {
  for (BufferId buffer = 1; buffer < program.buffers(); ++buffer) {
    const bool alike = program.chunks(buffer) == program.chunking().chunks();
    chunkings_.push_back(alike ? program.chunking() : Chunking{program.chunks(buffer)});
  }
  const schedule::OperationWaits waits{program};
  list_instructions(program, marks);
  link_followers(waits);
  list_pushes(waits, marks.pushes);
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

void Plan::list_instructions(const Program& program, const schedule::OperationMarks& marks) {
  schedule::for_operations(program, [&](const schedule::Operation& operation) {
    const auto index = static_cast<std::uint32_t>(instructions_.size());
    instructions_.push_back({.kind = operation.kind,
                             .whole_sum = marks.whole_sums[index],
                             .step = operation.step,
                             .peer = operation.peer,
                             .range = operation.range,
                             .first_source = static_cast<std::uint32_t>(sources_.size()),
                             .source_count = static_cast<std::uint32_t>(operation.sources.size())});
    sources_.insert(sources_.end(), operation.sources.begin(), operation.sources.end());
    if (operation.kind == Instruction::Kind::Send) {
      sends_to_[static_cast<std::size_t>(operation.peer)].push_back(index);
      return;
    }
    instructions_.back().combine = operation.write->combine;
    instructions_.back().source_chunk = operation.write->source_chunk;
    if (operation.kind == Instruction::Kind::Local) return;
    for (const Rank source : operation.sources) {
      if (source != kOwn) receives_from_[static_cast<std::size_t>(source)].push_back(index);
    }
  });
}

void Plan::link_followers(const schedule::OperationWaits& waits) {
  for (std::uint32_t i = 0; i < waits.operations(); ++i) {
    instructions_[i].waits = static_cast<std::uint32_t>(waits.of(i).size());
    for (const std::uint32_t earlier : waits.of(i)) ++instructions_[earlier].follower_count;
  }
  std::uint32_t count = 0;
  for (Instruction& instruction : instructions_) {
    instruction.first_follower = count;
    count += std::exchange(instruction.follower_count, 0);
  }
  followers_.resize(count);
  for (std::uint32_t i = 0; i < waits.operations(); ++i) {
    for (const std::uint32_t earlier : waits.of(i)) {
      Instruction& before = instructions_[earlier];
      followers_[before.first_follower + before.follower_count++] = i;
    }
  }
}

// A push waits only for the receive that may replace it.
void Plan::list_pushes(const schedule::OperationWaits& waits, const std::vector<bool>& pushes) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_receive;
  for (std::uint32_t i = 0; i < pushes.size(); ++i) {
    if (pushes[i]) of_receive[waits.of(i).front()].push_back(i);
  }
  for (const auto& [receive, sends] : of_receive) {
    instructions_[receive].first_push = static_cast<std::uint32_t>(pushes_.size());
    instructions_[receive].push_count = static_cast<std::uint32_t>(sends.size());
    pushes_.insert(pushes_.end(), sends.begin(), sends.end());
  }
}

std::shared_ptr<const Plan> plan_of(const Algorithm& algorithm, const Shape& shape, Rank rank,
                                    const std::string& packed_marks) {
  using Key = std::tuple<std::string_view, int, Collective, int, std::vector<int>, Rank, int, Rank>;
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<const Plan>> plans;
  const Key key{algorithm.name, algorithm.version, shape.collective, shape.ranks,
                shape.grid,     shape.root,        shape.segments,   rank};
  const std::lock_guard lock{mutex};
  std::shared_ptr<const Plan>& plan = plans[key];
  if (!plan) {
    const Program program = algorithm.program(shape, rank);
    const schedule::OperationMarks marks =
        algorithm.file != nullptr ? schedule::unpack(packed_marks, algorithm.file->schedule, rank)
                                  : schedule::apply(algorithm.marks(shape, rank), program);
    plan = std::make_shared<const Plan>(program, marks, shape.ranks);
  }
  return plan;
}

}  // namespace sluice::engine
