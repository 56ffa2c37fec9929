// The order that verify(), the engine's plans and both runs of the simulator give to random
// schedules, against the rule of docs/execution-model.md: operations of a rank that touch the same
// chunk, at least one of them writing it, take place in program order.
#include "schedule/dataflow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "engine/plan.h"
#include "schedule/event_graph.h"
#include "schedule/marks.h"
#include "simulate/collective.h"
#include "simulate/step_flow.h"
#include "tests/simulate/fabrics.h"
#include "tests/simulate/random_schedule.h"

namespace sluice::simulate {
namespace {

constexpr int kSeeds = 60;
constexpr int kRanks[] = {1, 2, 3, 7, 13};

// Which of some numbered things come before which, directly or by way of others.
class Order {
 public:
  explicit Order(std::size_t count) : before_(count, std::vector<bool>(count)) {}
  void add(std::size_t first, std::size_t then) { before_[first][then] = true; }
  void close() {
    for (std::size_t via = 0; via < before_.size(); ++via) {
      for (std::vector<bool>& row : before_) {
        if (!row[via]) continue;
        for (std::size_t then = 0; then < row.size(); ++then)
          if (before_[via][then]) row[then] = true;
      }
    }
  }
  bool has(std::size_t first, std::size_t then) const { return before_[first][then]; }
  friend bool operator==(const Order&, const Order&) = default;

 private:
  std::vector<std::vector<bool>> before_;
};

// An operation, written down from the page alone.
struct NaiveOperation {
  enum class Kind { Send, Receive, Local } kind;
  Rank rank;
  int step;
  Range range;
  std::vector<BufferId> reads;
  bool writes;
  std::vector<Rank> peers;  // of a send: the receiver; of a receive: the senders

  bool covers(int chunk, int chunks) const {
    return (chunk - range.first + chunks) % chunks < range.count;
  }
  bool touches(BufferId buffer) const {
    return (writes && range.buffer == buffer) ||
           std::find(reads.begin(), reads.end(), buffer) != reads.end();
  }
  bool conflicts_with(const NaiveOperation& other, int chunks) const {
    bool share_chunk = false;
    for (int chunk = 0; chunk < chunks; ++chunk)
      share_chunk = share_chunk || (covers(chunk, chunks) && other.covers(chunk, chunks));
    return share_chunk && ((writes && other.touches(range.buffer)) ||
                           (other.writes && touches(other.range.buffer)));
  }
};

// The operations of all ranks, rank by rank and in program order.
struct NaiveSchedule {
  explicit NaiveSchedule(const Schedule& schedule)
      : chunks{schedule.programs.front().chunking().chunks()} {
    using Kind = NaiveOperation::Kind;
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
      const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
      begins.push_back(operations.size());
      for (int step = 0; step < program.steps(); ++step) {
        for (const Send& send : program.sends(step)) {
          operations.push_back(
              {Kind::Send, rank, step, send.range, {send.range.buffer}, false, {send.peer}});
        }
        for (const Write& receive : program.receives(step)) {
          std::vector<Rank> peers;
          for (const Rank source : program.sources(receive))
            if (source != kOwn) peers.push_back(source);
          operations.push_back({Kind::Receive, rank, step, receive.range, {}, true, peers});
        }
        for (const Write& local : program.locals(step)) {
          const auto sources = program.sources(local);
          operations.push_back(
              {Kind::Local, rank, step, local.range, {sources.begin(), sources.end()}, true, {}});
        }
      }
    }
    begins.push_back(operations.size());
    match();
  }

  // Finds the receive of every send: messages between two ranks are matched in order.
  void match() {
    receive_of.resize(operations.size());
    for (std::size_t s = 0; s < operations.size(); ++s) {
      if (operations[s].kind != NaiveOperation::Kind::Send) continue;
      int before = 0;
      for (std::size_t other = 0; other < s; ++other) {
        before += operations[other].kind == NaiveOperation::Kind::Send &&
                  operations[other].rank == operations[s].rank &&
                  operations[other].peers == operations[s].peers;
      }
      for (std::size_t r = 0; r < operations.size(); ++r) {
        const NaiveOperation& receive = operations[r];
        if (receive.kind != NaiveOperation::Kind::Receive ||
            receive.rank != operations[s].peers.front())
          continue;
        const bool from_here = std::find(receive.peers.begin(), receive.peers.end(),
                                         operations[s].rank) != receive.peers.end();
        if (from_here && before-- == 0) receive_of[s] = r;
      }
    }
  }

  Order order() const {
    Order order{operations.size()};
    for (std::size_t rank = 0; rank + 1 < begins.size(); ++rank) {
      for (std::size_t a = begins[rank]; a < begins[rank + 1]; ++a) {
        for (std::size_t b = a + 1; b < begins[rank + 1]; ++b) {
          if (operations[a].conflicts_with(operations[b], chunks)) order.add(a, b);
        }
      }
    }
    order.close();
    return order;
  }

  std::size_t event_of(std::size_t operation) const {
    return operations[operation].kind == NaiveOperation::Kind::Send ? receive_of[operation]
                                                                    : operation;
  }

  int chunks;
  std::vector<NaiveOperation> operations;
  std::vector<std::size_t> begins;      // of each rank, and the end
  std::vector<std::size_t> receive_of;  // of each send
};

void for_random_schedules(const std::function<void(const Schedule&, const NaiveSchedule&)>& test) {
  for (const int ranks : kRanks) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, seed " << seed);
      const RandomSchedule random{seed, {.ranks = ranks}};
      test(random.schedule, NaiveSchedule{random.schedule});
      if (testing::Test::HasFailure()) return;
    }
  }
}

// pack_steps() takes an Algorithm, which has no state.
const Schedule* packed = nullptr;
StepTable table_of(const Schedule& schedule) {
  packed = &schedule;
  Algorithm algorithm;
  algorithm.program = [](const Shape&, Rank rank) {
    return packed->programs[static_cast<std::size_t>(rank)];
  };
  return pack_steps(algorithm, schedule.shape).value();
}

TEST(Dataflow, RandomSchedulesHaveEveryKindOfOperation) {
  std::map<NaiveOperation::Kind, int> kinds;
  int wrapping = 0;
  int sums_of_three = 0;
  int from_scratch = 0;
  for_random_schedules([&](const Schedule&, const NaiveSchedule& naive) {
    for (const NaiveOperation& operation : naive.operations) {
      ++kinds[operation.kind];
      wrapping += operation.range.first + operation.range.count > naive.chunks;
      sums_of_three += operation.peers.size() == 3;
      from_scratch +=
          operation.kind == NaiveOperation::Kind::Send && operation.range.buffer != kUserBuffer;
    }
  });
  for (const auto& [kind, count] : kinds) EXPECT_GT(count, 500);
  EXPECT_EQ(kinds.size(), 3U);
  EXPECT_GT(wrapping, 500);
  EXPECT_GT(sums_of_three, 100);
  EXPECT_GT(from_scratch, 500);
}

TEST(Dataflow, OfTheEnginesPlansIsTheRule) {
  for_random_schedules([](const Schedule& schedule, const NaiveSchedule& naive) {
    Order order{naive.operations.size()};
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
      const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
      const engine::Plan plan{program, schedule::apply({}, program), schedule.shape.ranks};
      const std::size_t begin = naive.begins[static_cast<std::size_t>(rank)];
      std::vector<std::uint32_t> waits(plan.instructions().size(), 0);
      for (std::size_t i = 0; i < plan.instructions().size(); ++i) {
        for (const std::uint32_t follower : plan.followers(plan.instructions()[i])) {
          order.add(begin + i, begin + follower);
          ++waits[follower];
        }
      }
      for (std::size_t i = 0; i < waits.size(); ++i)
        EXPECT_EQ(plan.instructions()[i].waits, waits[i]);
    }
    order.close();
    EXPECT_TRUE(order == naive.order());
  });
}

TEST(Dataflow, OfASimulationByEventsIsTheRule) {
  for_random_schedules([](const Schedule& schedule, const NaiveSchedule& naive) {
    const simulate::Dataflow flow = dataflow_of(schedule).value();
    ASSERT_EQ(flow.operations.size(), naive.operations.size());
    Order order{naive.operations.size()};
    std::vector<std::uint32_t> waits(flow.operations.size(), 0);
    for (std::uint32_t i = 0; i < flow.operations.size(); ++i) {
      for (const std::uint32_t follower : flow.followers_of(i)) {
        order.add(i, follower);
        ++waits[follower];
      }
    }
    for (std::size_t i = 0; i < waits.size(); ++i)
      EXPECT_EQ(flow.operations[i].waits_for, waits[i]);
    order.close();
    EXPECT_TRUE(order == naive.order());
    for (const DataflowMessage& message : flow.messages)
      EXPECT_EQ(naive.receive_of[message.send], message.receive);
  });
}

TEST(Dataflow, OfASimulationByStepsIsTheRule) {
  for_random_schedules([](const Schedule& schedule, const NaiveSchedule& naive) {
    using Kind = NaiveOperation::Kind;
    const StepTable table = table_of(schedule);
    StepFlow<schedule::OperationNumbers> flow{table};
    Order order{naive.operations.size()};
    // The next operation of its kind at a rank; of a send, also to that peer.
    std::map<std::tuple<Rank, Kind, Rank>, std::size_t> next;
    const auto next_operation = [&](Rank rank, Kind kind, Rank to) {
      std::size_t& at =
          next.try_emplace({rank, kind, to}, naive.begins[std::size_t(rank)]).first->second;
      while (naive.operations[at].kind != kind ||
             (kind == Kind::Send && naive.operations[at].peers.front() != to))
        ++at;
      return at++;
    };
    const auto wait = [&](std::size_t operation) {
      return [&order, operation](std::uint32_t earlier) { order.add(earlier, operation); };
    };
    const auto number = [](std::size_t operation) { return static_cast<std::uint32_t>(operation); };
    std::size_t operations = 0;
    for (int step = 0; step < table.steps; ++step) {
      for (const StepReceive& receive : table.receives_of(step)) {
        const std::size_t receiver = next_operation(receive.rank, Kind::Receive, 0);
        flow.before(flow.target_of(receive), wait(receiver));
        for (std::uint32_t k = 0; k < receive.source_count; ++k) {
          const StepAccess message = flow.message_of(receive, k);
          const std::size_t sender = next_operation(message.rank, Kind::Send, receive.rank);
          EXPECT_EQ(naive.receive_of[sender], receiver);
          flow.before(message, wait(sender));
          flow.after(message, number(sender));
          ++operations;
        }
        flow.after(flow.target_of(receive), number(receiver));
        ++operations;
      }
      for (const StepLocal& local : table.locals_of(step)) {
        const std::size_t operation = next_operation(local.rank, Kind::Local, 0);
        flow.for_accesses(local,
                          [&](const StepAccess& access) { flow.before(access, wait(operation)); });
        flow.for_accesses(local,
                          [&](const StepAccess& access) { flow.after(access, number(operation)); });
        ++operations;
      }
    }
    EXPECT_EQ(operations, naive.operations.size());
    order.close();
    EXPECT_TRUE(order == naive.order());
  });
}

TEST(Dataflow, OfTheVerifiersEventsIsTheRuleAndAWindowOfOne) {
  for_random_schedules([](const Schedule& schedule, const NaiveSchedule& naive) {
    // The graph numbers the operations that are not sends.
    std::vector<std::size_t> number(naive.operations.size());
    std::size_t events = 0;
    for (std::size_t i = 0; i < naive.operations.size(); ++i) {
      if (naive.operations[i].kind != NaiveOperation::Kind::Send) number[i] = events++;
    }
    Order expected{events};
    const Order conflicts = naive.order();
    for (std::size_t a = 0; a < naive.operations.size(); ++a) {
      for (std::size_t b = 0; b < naive.operations.size(); ++b) {
        const NaiveOperation& first = naive.operations[a];
        const NaiveOperation& then = naive.operations[b];
        const bool in_a_row = a < b && first.kind == NaiveOperation::Kind::Send &&
                              first.kind == then.kind && first.rank == then.rank &&
                              first.peers == then.peers;
        if (conflicts.has(a, b) || in_a_row)
          expected.add(number[naive.event_of(a)], number[naive.event_of(b)]);
      }
    }
    expected.close();
    schedule::EventGraph graph{schedule};
    ASSERT_EQ(graph.mismatch(), "");
    ASSERT_EQ(graph.events().size(), events);
    Order order{events};
    for (const auto& wait : graph.waits()) order.add(wait.before, wait.event);
    order.close();
    EXPECT_TRUE(order == expected);
    EXPECT_EQ(graph.order().size(), events);
  });
}

TEST(Dataflow, TakesTheSameTimeByStepsAsByEventsWhereTheSamePairsTalk) {
  // Without bytes only latencies count. If ranks send to the same peers in every step, a message
  // waits for nothing but dataflow and the message before it.
  for (const int ranks : {3, 7, 13}) {
    const FlowNetwork network = FlowNetwork::of(noded_fabric(2), ranks).value();
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const RandomSchedule random{seed, {.ranks = ranks, .ring = true}};
      RunOptions options;
      for (Rank rank = 0; rank < ranks; ++rank) options.starts_s.push_back(3e-6 * (rank % 4));
      const std::vector<double> events =
          run_events(dataflow_of(random.schedule).value(), network, options);
      const std::vector<double> steps = run_steps(table_of(random.schedule), network, options);
      for (std::size_t rank = 0; rank < events.size(); ++rank)
        EXPECT_NEAR(steps[rank], events[rank], 1e-12) << ranks << " ranks, seed " << seed;
    }
  }
}

TEST(StepTable, HasRoomForTheBuffersOfHundredsOfRanks) {
  // In `exchange` every rank has a scratch buffer for every peer, and adds up all of them.
  constexpr int kManyRanks = 300;
  const Algorithm& exchange = *find_algorithm("exchange").value();
  const StepTable table = pack_steps(exchange, {.ranks = kManyRanks}).value();
  const StepReceive& last = table.receives.back();
  EXPECT_EQ(last.rank, kManyRanks - 1);
  EXPECT_EQ(last.buffer, kManyRanks - 1) << "from the rank before the last";
  EXPECT_EQ(table.locals.back().passes, kManyRanks - 1);
}

}  // namespace
}  // namespace sluice::simulate
