#include "schedule/event_graph.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "schedule/dataflow.h"

namespace sluice::schedule {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// One side of a message, and its position in the Program of its rank.
struct Side {
  Rank peer;
  std::int32_t step;
  Range range;
  std::uint32_t index;  // of the send among its rank's sends, or of the operand that it fills
  std::uint32_t event;  // of a receive
};

// Sorts by peer and keeps the order within each (peer, rank) pair.
std::vector<Side> grouped_by_peer(std::vector<Side> sides) {
  std::stable_sort(sides.begin(), sides.end(),
                   [](const Side& a, const Side& b) { return a.peer < b.peer; });
  return sides;
}

}  // namespace

std::string chunks_of(const Range& range, int chunks) {
  if (range.count <= 1) return base::format("chunk {}", range.first);
  const auto last = (std::int64_t{range.first} + range.count - 1) % std::max(chunks, 1);
  return base::format("chunks {} to {}", range.first, last);
}

EventGraph::EventGraph(const Schedule& schedule) : schedule_{schedule} {
  list_events();
  match();
  if (!mismatch_.empty()) return;
  link_pairs();
  link_dataflow();
}

void EventGraph::list_events() {
  for (Rank rank = 0; rank < schedule_.shape.ranks; ++rank) {
    const Program& program = schedule_.programs[static_cast<std::size_t>(rank)];
    std::size_t sends = 0;
    for (int step = 0; step < program.steps(); ++step) {
      const auto add = [&](const Write& write, bool local) {
        events_.push_back(
            {rank, step, local, &write, static_cast<std::uint32_t>(operands_.size())});
        for (const std::int32_t source : program.sources(write)) {
          // Only the sender knows what a message is read from: match() fills it in.
          operands_.push_back(
              local            ? Operand{rank, source, Program::source_range(write, source).first}
              : source == kOwn ? Operand{rank, write.range.buffer, write.range.first}
                               : Operand{source, kUserBuffer, 0});
        }
      };
      sends += program.sends(step).size();
      for (const Write& receive : program.receives(step)) add(receive, false);
      for (const Write& local : program.locals(step)) add(local, true);
    }
    send_event_.emplace_back(sends, kNone);
  }
}

void EventGraph::match() {
  const auto ranks = static_cast<std::size_t>(schedule_.shape.ranks);
  std::vector<std::vector<Side>> sent_to(ranks);      // by receiver; peer = sender, in rank order
  std::vector<std::vector<Side>> received_by(ranks);  // by receiver; peer = sender
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Program& program = schedule_.programs[rank];
    std::uint32_t index = 0;
    for (int step = 0; step < program.steps(); ++step) {
      for (const Send& send : program.sends(step)) {
        sent_to[static_cast<std::size_t>(send.peer)].push_back(
            {static_cast<Rank>(rank), step, send.range, index++, kNone});
      }
    }
  }
  for (std::uint32_t event = 0; event < events_.size(); ++event) {
    const Event& at = events_[event];
    if (at.local) continue;
    for (std::uint32_t i = 0; i < at.write->source_count; ++i) {
      const Operand& operand = operands_[at.first_operand + i];
      if (operand.rank == at.rank) continue;  // kOwn
      received_by[static_cast<std::size_t>(at.rank)].push_back(
          {operand.rank, at.step, at.write->range, at.first_operand + i, event});
    }
  }

  operand_sends_.resize(operands_.size(), kNone);
  const Program& any = schedule_.programs.front();
  const auto name_of = [&](const Range& range) {
    return chunks_of(range, any.chunks(range.buffer));
  };
  for (std::size_t rank = 0; rank < ranks && mismatch_.empty(); ++rank) {
    const std::vector<Side>& sent = sent_to[rank];
    const std::vector<Side> received = grouped_by_peer(std::move(received_by[rank]));
    std::size_t i = 0;
    for (; i < sent.size() && i < received.size() && sent[i].peer == received[i].peer; ++i) {
      const Side& send = sent[i];
      const Side& receive = received[i];
      const bool same_chunks = schedule_.equal_chunks || send.range.first == receive.range.first;
      if (!same_chunks || send.range.count != receive.range.count) {
        mismatch_ = base::format(
            "rank {}, step {}, {}: the next message from rank {} carries {}, sent in its step {}",
            rank, receive.step + 1, name_of(receive.range), receive.peer, name_of(send.range),
            send.step + 1);
        return;
      }
      operands_[receive.index].buffer = send.range.buffer;
      operands_[receive.index].first = send.range.first;
      operand_sends_[receive.index] = send.index;
      send_event_[static_cast<std::size_t>(send.peer)][send.index] = receive.event;
    }
    const bool send_is_left =
        i < sent.size() && (i == received.size() || sent[i].peer < received[i].peer);
    if (send_is_left) {
      const Side& send = sent[i];
      mismatch_ =
          base::format("rank {}, step {}, {}: it is sent to rank {}, which never receives it",
                       send.peer, send.step + 1, name_of(send.range), rank);
    } else if (i < received.size()) {
      const Side& receive = received[i];
      mismatch_ = base::format("rank {}, step {}, {}: it waits for rank {}, which never sends it",
                               rank, receive.step + 1, name_of(receive.range), receive.peer);
    }
  }
}

void EventGraph::wait(std::uint32_t event, std::uint32_t before) {
  const bool known =
      !waits_.empty() && waits_.back().event == event && waits_.back().before == before;
  if (!known && event != before) waits_.push_back({before, event});
}

void EventGraph::link_pairs() {
  std::vector<std::uint32_t> last(static_cast<std::size_t>(schedule_.shape.ranks));
  for (std::size_t rank = 0; rank < last.size(); ++rank) {
    std::fill(last.begin(), last.end(), kNone);
    const Program& program = schedule_.programs[rank];
    std::size_t index = 0;
    for (int step = 0; step < program.steps(); ++step) {
      for (const Send& send : program.sends(step)) {
        const std::uint32_t event = send_event_[rank][index++];
        const std::uint32_t before =
            std::exchange(last[static_cast<std::size_t>(send.peer)], event);
        if (before != kNone) wait(event, before);
      }
    }
  }
}

void EventGraph::link_dataflow() {
  std::uint32_t next_event = 0;
  std::vector<std::uint32_t> event_of;  // each operation of a rank
  for (std::size_t rank = 0; rank < send_event_.size(); ++rank) {
    const Program& program = schedule_.programs[rank];
    event_of.clear();
    std::size_t sends = 0;
    for_operations(program, [&](const Operation& operation) {
      const bool is_send = operation.kind == Operation::Kind::Send;
      event_of.push_back(is_send ? send_event_[rank][sends++] : next_event++);
    });
    const OperationWaits waits{program};
    for (std::uint32_t i = 0; i < waits.operations(); ++i) {
      for (const std::uint32_t earlier : waits.of(i)) wait(event_of[i], event_of[earlier]);
    }
  }
}

std::vector<std::uint32_t> EventGraph::order() {
  const std::size_t count = events_.size();
  // The followers of all events in one list, and where the part of each event ends.
  std::vector<std::uint32_t> follower_end(count + 1, 0);
  std::vector<std::uint32_t> waits_left(count, 0);
  for (const Wait& each : waits_) {
    ++follower_end[each.before];
    ++waits_left[each.event];
  }
  std::uint32_t sum = 0;
  for (std::uint32_t& end : follower_end) sum += std::exchange(end, sum);
  std::vector<std::uint32_t> followers(waits_.size());
  for (const Wait& each : waits_) followers[follower_end[each.before]++] = each.event;

  std::vector<std::uint32_t> order;
  order.reserve(count);
  for (std::uint32_t event = 0; event < count; ++event) {
    if (waits_left[event] == 0) order.push_back(event);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t done = order[i];
    const std::uint32_t begin = done == 0 ? 0 : follower_end[done - 1];
    for (std::uint32_t f = begin; f < follower_end[done]; ++f) {
      if (--waits_left[followers[f]] == 0) order.push_back(followers[f]);
    }
  }
  if (order.size() < count) {
    explain_cycle(waits_left);
    order.clear();
  }
  return order;
}

void EventGraph::explain_cycle(const std::vector<std::uint32_t>& waits_left) {
  // Every event outside the order waits for another one outside it. Following these waits once per
  // event ends inside a cycle.
  std::vector<std::uint32_t> waits_for(events_.size(), kNone);
  for (const Wait& each : waits_) {
    if (waits_left[each.event] > 0 && waits_left[each.before] > 0)
      waits_for[each.event] = each.before;
  }
  std::uint32_t event = 0;
  while (waits_left[event] == 0) ++event;
  for (std::size_t i = 0; i < events_.size(); ++i) event = waits_for[event];

  std::size_t length = 1;
  for (std::uint32_t at = waits_for[event]; at != event; at = waits_for[at]) ++length;
  deadlock_ = base::format("{}: deadlock, it waits for {}", describe(events_[event]),
                           describe(events_[waits_for[event]]));
  deadlock_ += length == 2 ? ", and that waits for it"
                           : base::format(", and so on in a cycle of {}", length);
}

std::string EventGraph::describe(const Event& event) const {
  std::string from;
  for (const Operand& operand : operands(event)) {
    if (operand.rank != event.rank)
      from += base::format("{}{}", from.empty() ? "" : ", ", operand.rank);
  }
  const Range& range = event.write->range;
  return base::format("rank {}, step {}, {} ({})", event.rank, event.step + 1,
                      chunks_of(range, schedule_.programs.front().chunks(range.buffer)),
                      from.empty() ? "a local operation" : "received from rank " + from);
}

}  // namespace sluice::schedule
