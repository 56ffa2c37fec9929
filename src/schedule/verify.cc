// verify.cc - the proof. Each part relies on the parts before it: every program by itself, how
// messages match (event_graph.h), deadlocks, and the values that ranks compute (symbolic_run.h).
#include "sluice/verify.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "schedule/dataflow.h"
#include "schedule/event_graph.h"
#include "schedule/marks.h"
#include "schedule/symbolic_run.h"
#include "schedule/text_form.h"

// Functions that check something return "", or one sentence that explains the error.
namespace sluice::schedule {
namespace {

std::string shape_error(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  if (shape.ranks < 1 || schedule.programs.size() != static_cast<std::size_t>(shape.ranks)) {
    return base::format("it has {} programs for {} ranks", schedule.programs.size(), shape.ranks);
  }
  if (shape.root < 0 || shape.root >= shape.ranks) {
    return base::format("root {} is not one of {} ranks", shape.root, shape.ranks);
  }
  const Program& first = schedule.programs.front();
  if (first.chunking().chunks() < 1) return "it has no chunks";
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
    if (program.chunking() != first.chunking()) {
      return base::format("rank {} cuts the buffer into other chunks than rank 0", rank);
    }
    if (program.scratch() != first.scratch() ||
        program.scratch_chunks() != first.scratch_chunks()) {
      return base::format("rank {} has other scratch buffers than rank 0", rank);
    }
  }
  if (schedule.equal_chunks && !first.chunking().uniform())
    return "it declares equal chunks, but chunks have weights";
  if (!schedule.equal_chunks && !first.scratch_chunks().empty())
    return "a scratch buffer has chunks of its own, so the schedule must declare equal chunks";
  for (BufferId buffer = 1; buffer < first.buffers(); ++buffer) {
    if (first.chunks(buffer) < 1)
      return base::format("{} has no chunks", buffer_name(first.scratch(), buffer));
  }
  if (has_owners(shape.collective) && first.chunking().chunks() % shape.ranks != 0) {
    return base::format(
        "{} needs the same number of chunks for every rank, but {} chunks are not a multiple of {} "
        "ranks",
        name(shape.collective), first.chunking().chunks(), shape.ranks);
  }
  return {};
}

// Checks one rank's Program by itself: ranks, chunks and buffers exist, operations have the sources
// that they need, and no two transfers of one step race.
class ProgramCheck {
 public:
  ProgramCheck(const Schedule& schedule, Rank rank)
      : program_{schedule.programs[static_cast<std::size_t>(rank)]},
        ranks_{schedule.shape.ranks},
        rank_{rank},
        equal_chunks_{schedule.equal_chunks},
        seen_(static_cast<std::size_t>(std::max(ranks_, program_.buffers())), 0),
        positions_{program_},
        read_(positions_.count(), 0),
        written_(read_.size(), 0) {}

  std::string run() {
    for (step_ = 0; step_ < program_.steps() && error_.empty(); ++step_) {
      for (const Send& send : program_.sends(step_)) check_send(send);
      for (const Write& receive : program_.receives(step_)) check_receive(receive);
      for (const Write& local : program_.locals(step_)) check_local(local);
    }
    return error_;
  }

 private:
  template <class... Args>
  void fail(const Range& range, fmt::format_string<Args...> format, Args&&... args) {
    if (!error_.empty()) return;
    const bool known = range.buffer >= 0 && range.buffer < program_.buffers();
    const int chunks = program_.chunks(known ? range.buffer : kUserBuffer);
    error_ = base::format("rank {}, step {}, {}: {}", rank_, step_ + 1, chunks_of(range, chunks),
                          base::format(format, std::forward<Args>(args)...));
  }

  bool range_exists(const Range& range) {
    const bool exists = program_.contains(range);
    if (!exists) {
      fail(range, "there is no such range in a buffer of {} chunks and {} buffers",
           program_.chunking().chunks(), program_.buffers());
    }
    return exists;
  }

  bool peer_exists(Rank peer, const Range& range) {
    if (peer == rank_) {
      fail(range, "a rank cannot exchange messages with itself");
    } else if (peer < 0 || peer >= ranks_) {
      fail(range, "there is no rank {} among {}", peer, ranks_);
    }
    return error_.empty();
  }

  // Fails if `source` is already in the source list that began with the current mark.
  bool is_new(std::int32_t source, const Range& range) {
    int& mark = seen_[static_cast<std::size_t>(source)];
    if (mark == mark_) fail(range, "source {} is listed twice", source);
    mark = mark_;
    return error_.empty();
  }

  bool count_fits(const Write& write) {
    const bool copy = write.combine == Combine::Copy;
    const bool fits = copy ? write.source_count == 1 : write.source_count >= 2;
    if (!fits) {
      fail(write.range, "a {} cannot have {} sources", copy ? "copy" : "reduce",
           write.source_count);
    }
    return fits;
  }

  void check_send(const Send& send) {
    if (!range_exists(send.range) || !peer_exists(send.peer, send.range)) return;
    positions_.for_each(send.range, [&](std::size_t position) {
      if (written_[position] == step_ + 1) fail_race(send.range);
      read_[position] = step_ + 1;
    });
  }

  void check_receive(const Write& receive) {
    if (!range_exists(receive.range) || !count_fits(receive)) return;
    ++mark_;
    bool own_listed = false;
    for (const Rank source : program_.sources(receive)) {
      if (source == kOwn) {
        if (own_listed) return fail(receive.range, "its own value is listed twice");
        if (receive.combine == Combine::Copy) return fail(receive.range, "it copies from itself");
        own_listed = true;
      } else if (!peer_exists(source, receive.range) || !is_new(source, receive.range)) {
        return;
      }
    }
    positions_.for_each(receive.range, [&](std::size_t position) {
      if (written_[position] == step_ + 1 || read_[position] == step_ + 1) fail_race(receive.range);
      written_[position] = step_ + 1;
    });
  }

  void check_local(const Write& local) {
    if (!range_exists(local.range) || !count_fits(local)) return;
    ++mark_;
    for (const BufferId source : program_.sources(local)) {
      if (source < 0 || source >= program_.buffers()) {
        return fail(local.range, "there is no buffer {}", source);
      }
      const Range read = Program::source_range(local, source);
      if (!program_.contains(read)) return (void)range_exists(read);
      if (read.first != local.range.first && !equal_chunks_) {
        return fail(local.range, "it reads {}, so the schedule must declare equal chunks",
                    chunks_of(read, program_.chunks(source)));
      }
      if (local.combine == Combine::Copy && overlap(read, local.range))
        return fail(local.range, "it copies from itself");
      if (!is_new(source, local.range)) return;
    }
  }

  bool overlap(const Range& a, const Range& b) const {
    if (a.buffer != b.buffer) return false;
    const int chunks = program_.chunks(a.buffer);
    const int distance = (b.first - a.first + chunks) % chunks;
    return distance < a.count || chunks - distance < b.count;
  }

  void fail_race(const Range& range) {
    fail(range, "race: another transfer of this step touches {} while it is written",
         buffer_name(program_.scratch(), range.buffer));
  }

  const Program& program_;
  int ranks_;
  Rank rank_;
  bool equal_chunks_;
  int step_ = 0;
  int mark_ = 0;
  std::string error_;
  std::vector<int> seen_;  // by rank or buffer: the mark of the last source list that has it
  Positions positions_;
  std::vector<int> read_;     // by position: step + 1 of the last transfer that read it
  std::vector<int> written_;  // by position: step + 1 of the last transfer that wrote it
};

std::string form_error(const Schedule& schedule) {
  std::string error = shape_error(schedule);
  for (Rank rank = 0; error.empty() && rank < schedule.shape.ranks; ++rank) {
    error = ProgramCheck{schedule, rank}.run();
  }
  return error;
}

// `marks`: set if it is not null and there is no error.
std::string schedule_error(const Schedule& schedule, std::vector<OperationMarks>* marks) {
  if (std::string error = form_error(schedule); !error.empty()) return error;  // (d) no race
  EventGraph graph{schedule};
  if (!graph.mismatch().empty()) return graph.mismatch();  // (b) sends and receives match
  const std::vector<std::uint32_t> order = graph.order();
  if (!graph.deadlock().empty()) return graph.deadlock();  // (c) no deadlock
  // (a) the result, (f) no dead store
  std::string error = symbolic_run_error(schedule, graph, order);
  if (error.empty() && marks != nullptr) *marks = find_marks(schedule, graph, order);
  return error;
}

Proof proof_of(const Schedule& schedule, std::vector<OperationMarks>* marks) {
  Proof proof;
  proof.reason = schedule_error(schedule, marks);
  proof.proven = proof.reason.empty();
  for (const Program& program : schedule.programs) {
    proof.steps = std::max(proof.steps, program.steps());
    if (proof.proven) proof.bytes_factor = std::max(proof.bytes_factor, sent_share(program));
    for (int step = 0; step < program.steps(); ++step) {
      proof.transfers += static_cast<std::int64_t>(program.sends(step).size());
    }
  }
  return proof;
}

}  // namespace

Proof verify_and_mark(const Schedule& schedule, std::vector<OperationMarks>& marks) {
  return proof_of(schedule, &marks);
}

}  // namespace sluice::schedule

namespace sluice {

std::string to_string(Fraction fraction) {
  std::string text = std::to_string(fraction.numerator());
  if (fraction.denominator() != 1) text += "/" + std::to_string(fraction.denominator());
  return text;
}

Proof verify(const Schedule& schedule) { return schedule::proof_of(schedule, nullptr); }

}  // namespace sluice
