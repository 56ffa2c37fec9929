// dataflow.cc - dataflow_of(): the operations of a schedule, and which of them each waits for.
#include "schedule/dataflow.h"

#include <map>
#include <utility>

#include "base/format.h"
#include "simulate/event_run.h"

namespace sluice::simulate {
namespace {

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

  void add_rank(Rank rank, const Program& program) {
    using Kind = schedule::Operation::Kind;
    const auto first = static_cast<std::uint32_t>(flow_.operations.size());
    schedule::for_operations(program, [&](const schedule::Operation& operation) {
      const auto id = static_cast<std::uint32_t>(flow_.operations.size());
      DataflowOperation& added = flow_.operations.emplace_back(DataflowOperation{.rank = rank});
      const double share = static_cast<double>(program.chunking().weight(operation.range)) /
                           static_cast<double>(program.chunking().total_weight());
      if (operation.kind == Kind::Send) {
        sent_[{rank, operation.peer}].push_back({id, share});
        return;
      }
      if (operation.kind == Kind::Receive) {
        for (const Rank source : operation.sources) {
          if (source == kOwn) continue;
          received_[{source, rank}].push_back({id, share});
          ++added.messages;
        }
      }
      // A local copy takes as long as one addition.
      const bool copies = operation.write->combine == Combine::Copy;
      if (operation.kind == Kind::Local || !copies)
        added.added = share * (copies ? 1 : operation.write->source_count - 1);
    });
    const schedule::OperationWaits waits{program};
    for (std::uint32_t i = 0; i < waits.operations(); ++i) {
      for (const std::uint32_t earlier : waits.of(i))
        edges_.emplace_back(first + earlier, first + i);
    }
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
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::map<std::pair<Rank, Rank>, std::vector<MessageEnd>> sent_;
  std::map<std::pair<Rank, Rank>, std::vector<MessageEnd>> received_;
};

}  // namespace

Result<Dataflow> dataflow_of(const Schedule& schedule) { return Builder{schedule}.build(); }

}  // namespace sluice::simulate
