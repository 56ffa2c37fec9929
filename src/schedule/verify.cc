// verify.cc - the proof, in the order in which each part relies on the ones before it.
#include "sluice/verify.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "schedule/event_graph.h"
#include "schedule/text_form.h"
#include "schedule/values.h"

namespace sluice::schedule {
namespace {

std::string why_malformed_shape(const Schedule& schedule) {
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
    if (program.scratch() != first.scratch()) {
      return base::format("rank {} has other scratch buffers than rank 0", rank);
    }
  }
  if (has_owners(shape.collective) && first.chunking().chunks() % shape.ranks != 0) {
    return base::format(
        "{} needs the same number of chunks for every rank, but {} chunks are not a "
        "multiple of {} ranks",
        name(shape.collective), first.chunking().chunks(), shape.ranks);
  }
  return {};
}

// Checks one rank's Program, step by step.
class ProgramCheck {
 public:
  ProgramCheck(const Schedule& schedule, Rank rank)
      : program_{schedule.programs[static_cast<std::size_t>(rank)]},
        ranks_{schedule.shape.ranks},
        rank_{rank},
        chunks_{program_.chunking().chunks()},
        seen_(static_cast<std::size_t>(std::max(ranks_, program_.buffers())), 0),
        read_(static_cast<std::size_t>(program_.buffers()) * static_cast<std::size_t>(chunks_), 0),
        written_(read_.size(), 0) {}

  std::string run() {
    for (step_ = 0; step_ < program_.steps() && why_.empty(); ++step_) {
      for (const Send& send : program_.sends(step_)) check_send(send);
      for (const Write& receive : program_.receives(step_)) check_receive(receive);
      for (const Write& local : program_.locals(step_)) check_local(local);
    }
    return why_;
  }

 private:
  template <class... Args>
  void refuse(const Range& range, fmt::format_string<Args...> format, Args&&... args) {
    if (!why_.empty()) return;
    why_ = base::format("rank {}, step {}, {}: {}", rank_, step_ + 1, chunks_of(range, chunks_),
                        base::format(format, std::forward<Args>(args)...));
  }

  bool range_exists(const Range& range) {
    const bool exists = range.buffer >= 0 && range.buffer < program_.buffers() &&
                        range.first >= 0 && range.first < chunks_ && range.count >= 1 &&
                        range.count <= chunks_;
    if (!exists) {
      refuse(range, "there is no such range in a buffer of {} chunks and {} buffers", chunks_,
             program_.buffers());
    }
    return exists;
  }

  bool peer_exists(Rank peer, const Range& range) {
    if (peer == rank_) {
      refuse(range, "a rank cannot exchange messages with itself");
    } else if (peer < 0 || peer >= ranks_) {
      refuse(range, "there is no rank {} among {}", peer, ranks_);
    }
    return why_.empty();
  }

  // Whether `source` comes for the first time in the list that began with the present mark.
  bool first_time(std::int32_t source, const Range& range) {
    auto& mark = seen_[static_cast<std::size_t>(source)];
    if (mark == mark_) refuse(range, "source {} is listed twice", source);
    mark = mark_;
    return why_.empty();
  }

  bool count_fits(const Write& write) {
    if (write.combine == Combine::Copy ? write.source_count == 1 : write.source_count >= 2)
      return true;
    refuse(write.range, "a {} cannot have {} sources",
           write.combine == Combine::Copy ? "copy" : "reduce", write.source_count);
    return false;
  }

  void check_send(const Send& send) {
    if (!range_exists(send.range) || !peer_exists(send.peer, send.range)) return;
    for_places(send.range, [&](std::size_t place) {
      if (written_[place] == step_ + 1) race(send.range);
      read_[place] = step_ + 1;
    });
  }

  void check_receive(const Write& receive) {
    if (!range_exists(receive.range) || !count_fits(receive)) return;
    ++mark_;
    bool own_listed = false;
    for (const Rank source : program_.sources(receive)) {
      if (source == kOwn) {
        if (own_listed) return refuse(receive.range, "its own value is listed twice");
        if (receive.combine == Combine::Copy) return refuse(receive.range, "it copies from itself");
        own_listed = true;
      } else if (!peer_exists(source, receive.range) || !first_time(source, receive.range)) {
        return;
      }
    }
    for_places(receive.range, [&](std::size_t place) {
      if (written_[place] == step_ + 1 || read_[place] == step_ + 1) race(receive.range);
      written_[place] = step_ + 1;
    });
  }

  void check_local(const Write& local) {
    if (!range_exists(local.range) || !count_fits(local)) return;
    ++mark_;
    for (const BufferId source : program_.sources(local)) {
      if (source < 0 || source >= program_.buffers()) {
        return refuse(local.range, "there is no buffer {}", source);
      }
      if (local.combine == Combine::Copy && source == local.range.buffer) {
        return refuse(local.range, "it copies from itself");
      }
      if (!first_time(source, local.range)) return;
    }
  }

  void race(const Range& range) {
    refuse(range, "race: another transfer of this step touches {} while it is written",
           buffer_name(program_.scratch(), range.buffer));
  }

  template <class Visit>
  void for_places(const Range& range, Visit&& visit) const {
    for (int i = 0; i < range.count; ++i) {
      visit(static_cast<std::size_t>(range.buffer) * static_cast<std::size_t>(chunks_) +
            static_cast<std::size_t>((range.first + i) % chunks_));
    }
  }

  const Program& program_;
  int ranks_;
  Rank rank_;
  int chunks_;
  int step_ = 0;
  int mark_ = 0;
  std::string why_;
  std::vector<int> seen_;     // mark of the source list in which a rank or buffer came last
  std::vector<int> read_;     // step + 1 in which a place was read last by a transfer
  std::vector<int> written_;  // and written
};

// What can be checked of each rank's Program by itself: ranks, chunks and buffers exist, sources
// are as their operation needs them, all Programs are cut alike, and no two transfers of one step
// race.
// "" or one sentence; everything else that verify() does relies on this having passed.
std::string why_malformed(const Schedule& schedule) {
  std::string why = why_malformed_shape(schedule);
  for (Rank rank = 0; why.empty() && rank < schedule.shape.ranks; ++rank) {
    why = ProgramCheck{schedule, rank}.run();
  }
  return why;
}

std::string why_not_proven(const Schedule& schedule) {
  if (std::string why = why_malformed(schedule); !why.empty()) return why;  // (d) no race
  EventGraph graph{schedule};
  if (!graph.mismatch().empty()) return graph.mismatch();  // (b) sends and receives match
  const std::vector<std::uint32_t> order = graph.order();
  if (!graph.deadlock().empty()) return graph.deadlock();  // (c) no deadlock
  return why_wrong_values(schedule, graph, order);         // (a) the result, (f) nothing unused
}

}  // namespace
}  // namespace sluice::schedule

namespace sluice {

std::string to_string(Fraction fraction) {
  std::string text = std::to_string(fraction.numerator());
  if (fraction.denominator() != 1) text += "/" + std::to_string(fraction.denominator());
  return text;
}

Proof verify(const Schedule& schedule) {
  Proof proof;
  proof.reason = schedule::why_not_proven(schedule);
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

}  // namespace sluice
