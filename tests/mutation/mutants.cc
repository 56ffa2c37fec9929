#include "tests/mutation/mutants.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::mutation {
namespace {

enum class Kind : std::uint8_t { Send, Receive, Local };

// An operation that can be changed, unlike those of a Program.
struct Operation {
  Kind kind;
  int step;
  Combine combine;
  Range range;
  std::vector<std::int32_t> sources;  // or the peer of a send
};

std::vector<Operation> operations_of(const Program& program) {
  std::vector<Operation> operations;
  const auto add = [&](Kind kind, int step, const Write& write) {
    const auto sources = program.sources(write);
    operations.push_back(
        {kind, step, write.combine, write.range, {sources.begin(), sources.end()}});
  };
  for (int step = 0; step < program.steps(); ++step) {
    for (const Send& send : program.sends(step))
      operations.push_back({Kind::Send, step, Combine::Copy, send.range, {send.peer}});
    for (const Write& receive : program.receives(step)) add(Kind::Receive, step, receive);
    for (const Write& local : program.locals(step)) add(Kind::Local, step, local);
  }
  return operations;
}

// REQUIRES: operations are in the order of their steps.
Program program_of(const std::vector<Operation>& operations, int steps, const Program& like) {
  Program program{like.chunking(), like.scratch()};
  auto next = operations.begin();
  for (int step = 0; step < steps; ++step) {
    program.begin_step();
    for (; next != operations.end() && next->step == step; ++next) {
      const auto& [kind, at, combine, range, sources] = *next;
      if (kind == Kind::Send) {
        program.send(sources[0], range);
      } else if (kind == Kind::Receive) {
        combine == Combine::Copy ? program.receive_copy(sources[0], range)
                                 : program.receive_reduce(range, sources);
      } else {
        combine == Combine::Copy ? program.local_copy(range, sources[0])
                                 : program.local_reduce(range, sources);
      }
    }
  }
  return program;
}

// The mutants of one rank's program.
class RankMutants {
 public:
  RankMutants(Schedule& schedule, Rank rank, const MutantVisitor& visit)
      : schedule_{schedule},
        rank_{rank},
        visit_{visit},
        original_{schedule.programs[rank]},
        operations_{operations_of(original_)} {}

  void visit_all() {
    for (std::size_t at = 0; at < operations_.size(); ++at) {
      change_lists(at);
      change_peers(at);
      change_chunks(at);
      change_buffers(at);
      change_combine(at);
      change_sources(at);
      move(at);
    }
    schedule_.programs[rank_] = original_;
  }

 private:
  void change_lists(std::size_t at);
  void change_peers(std::size_t at);
  void change_chunks(std::size_t at);
  void change_buffers(std::size_t at);
  void change_combine(std::size_t at);
  void change_sources(std::size_t at);
  void move(std::size_t at);

  int chunks() const { return original_.chunking().chunks(); }
  std::string describe(std::size_t at, const std::string& change) const;
  // Visits the program with these operations, or the original program with one operation replaced.
  void yield(const std::vector<Operation>& operations, std::size_t at, const std::string& change);
  void yield(std::size_t at, const Operation& replacement, const std::string& change);

  Schedule& schedule_;
  const Rank rank_;
  const MutantVisitor& visit_;
  const Program original_;
  std::vector<Operation> operations_;
};

std::string RankMutants::describe(std::size_t at, const std::string& change) const {
  static constexpr const char* kKinds[] = {"send", "receive", "local"};
  const Operation& operation = operations_[at];
  std::string text =
      "rank " + std::to_string(rank_) + ", step " + std::to_string(operation.step + 1) + ", " +
      kKinds[static_cast<int>(operation.kind)] + " of chunks " +
      std::to_string(operation.range.first) + "+" + std::to_string(operation.range.count) +
      " of buffer " + std::to_string(operation.range.buffer) +
      (operation.kind == Kind::Send ? ", peer" : ", sources");
  for (const std::int32_t source : operation.sources) text += " " + std::to_string(source);
  return text + ": " + change;
}

void RankMutants::yield(const std::vector<Operation>& operations, std::size_t at,
                        const std::string& change) {
  const int last = operations.empty() ? 0 : operations.back().step + 1;
  schedule_.programs[rank_] = program_of(operations, std::max(original_.steps(), last), original_);
  visit_(schedule_, describe(at, change));
}

void RankMutants::yield(std::size_t at, const Operation& replacement, const std::string& change) {
  Operation kept = std::exchange(operations_[at], replacement);
  const std::vector<Operation> changed = operations_;
  operations_[at] = std::move(kept);
  yield(changed, at, change);
}

void RankMutants::change_lists(std::size_t at) {
  const auto position = static_cast<std::ptrdiff_t>(at);
  std::vector<Operation> dropped = operations_;
  dropped.erase(dropped.begin() + position);
  yield(dropped, at, "dropped");

  std::vector<Operation> twice = operations_;
  twice.insert(twice.begin() + position, operations_[at]);
  yield(twice, at, "listed twice");

  if (at + 1 == operations_.size()) return;
  const Operation& next = operations_[at + 1];
  if (next.step != operations_[at].step || next.kind != operations_[at].kind) return;
  std::vector<Operation> swapped = operations_;
  std::swap(swapped[at], swapped[at + 1]);
  yield(swapped, at, "listed after the next one");
}

void RankMutants::change_peers(std::size_t at) {
  if (operations_[at].kind == Kind::Local) return;
  for (std::size_t s = 0; s < operations_[at].sources.size(); ++s) {
    const Rank peer = operations_[at].sources[s];
    if (peer == kOwn) continue;
    for (Rank other = 0; other < schedule_.shape.ranks; ++other) {
      if (other == peer || other == rank_) continue;
      Operation changed = operations_[at];
      changed.sources[s] = other;
      yield(at, changed, "peer " + std::to_string(peer) + " replaced by " + std::to_string(other));
    }
  }
}

void RankMutants::change_chunks(std::size_t at) {
  for (int first = 0; first < chunks(); ++first) {
    if (first == operations_[at].range.first) continue;
    Operation changed = operations_[at];
    changed.range.first = first;
    yield(at, changed, "first chunk replaced by " + std::to_string(first));
  }
  for (const int difference : {-1, 1}) {
    Operation changed = operations_[at];
    changed.range.count += difference;
    if (changed.range.count < 1 || changed.range.count > chunks()) continue;
    yield(at, changed, difference < 0 ? "one chunk fewer" : "one chunk more");
  }
}

void RankMutants::change_buffers(std::size_t at) {
  for (BufferId buffer = 0; buffer < original_.buffers(); ++buffer) {
    const std::string by = " replaced by " + std::to_string(buffer);
    if (buffer != operations_[at].range.buffer) {
      Operation changed = operations_[at];
      changed.range.buffer = buffer;
      yield(at, changed, "buffer" + by);
    }
    if (operations_[at].kind != Kind::Local) continue;
    for (std::size_t s = 0; s < operations_[at].sources.size(); ++s) {
      if (buffer == operations_[at].sources[s]) continue;
      Operation changed = operations_[at];
      changed.sources[s] = buffer;
      yield(at, changed, "source buffer " + std::to_string(operations_[at].sources[s]) + by);
    }
  }
}

void RankMutants::change_combine(std::size_t at) {
  const Operation& operation = operations_[at];
  if (operation.kind == Kind::Send) return;
  const std::int32_t own = operation.kind == Kind::Receive ? kOwn : operation.range.buffer;
  Operation changed = operation;
  if (operation.combine == Combine::Copy) {
    changed.combine = Combine::Reduce;
    changed.sources = {operation.sources[0], own};
    yield(at, changed, "Copy made Reduce, the old value last");
    changed.sources = {own, operation.sources[0]};
    yield(at, changed, "Copy made Reduce, the old value first");
    return;
  }
  changed.combine = Combine::Copy;
  for (const std::int32_t source : operation.sources) {
    if (source == own) continue;
    changed.sources = {source};
    yield(at, changed, "Reduce made Copy of " + std::to_string(source));
  }
}

void RankMutants::change_sources(std::size_t at) {
  const std::size_t count = operations_[at].sources.size();
  for (std::size_t s = 0; s + 1 < count; ++s) {
    Operation changed = operations_[at];
    std::swap(changed.sources[s], changed.sources[s + 1]);
    yield(at, changed, "sources " + std::to_string(s) + " and the next swapped");
  }
  if (count < 3) return;  // with one source it would be a Copy
  for (std::size_t s = 0; s < count; ++s) {
    Operation changed = operations_[at];
    changed.sources.erase(changed.sources.begin() + static_cast<std::ptrdiff_t>(s));
    yield(at, changed, "source " + std::to_string(s) + " removed");
  }
}

void RankMutants::move(std::size_t at) {
  std::vector<Operation> others = operations_;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
  const auto insert = [&](int step, bool at_end, const std::string& change) {
    const auto before = std::find_if(others.begin(), others.end(), [&](const Operation& other) {
      return at_end ? other.step > step : other.step >= step;
    });
    Operation moved = operations_[at];
    moved.step = step;
    std::vector<Operation> changed = others;
    changed.insert(changed.begin() + (before - others.begin()), moved);
    yield(changed, at, change);
  };
  const int step = operations_[at].step;
  const auto has_like = [&](int other_step) {
    return std::any_of(others.begin(), others.end(), [&](const Operation& other) {
      return other.step == other_step && other.kind == operations_[at].kind;
    });
  };
  insert(step + 1, true, "moved to the end of the step after");
  if (has_like(step + 1)) insert(step + 1, false, "moved to the front of the step after");
  if (step == 0) return;
  insert(step - 1, true, "moved to the end of the step before");
  if (has_like(step - 1)) insert(step - 1, false, "moved to the front of the step before");
}

}  // namespace

void for_each_mutant(const Schedule& schedule, const MutantVisitor& visit) {
  Schedule mutant = schedule;
  for (Rank rank = 0; rank < static_cast<Rank>(schedule.programs.size()); ++rank)
    RankMutants{mutant, rank, visit}.visit_all();
}

}  // namespace sluice::mutation
