// interpreter_test.cc - the oracle itself, on schedules small enough to know the answer.
#include "tests/mutation/interpreter.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/mutation/values.h"

namespace sluice::mutation {
namespace {

constexpr int kRuns = 100;

// An all_reduce ring by hand: rank r sends chunk r - step, then passes on what it received.
Schedule ring_by_hand(int ranks) {
  Schedule schedule{"by_hand", {.collective = Collective::AllReduce, .ranks = ranks}, false, {}};
  for (Rank rank = 0; rank < ranks; ++rank) {
    Program program{Layout{ranks}};
    const Rank left = (rank + ranks - 1) % ranks;
    const Rank right = (rank + 1) % ranks;
    for (int step = 0; step < 2 * (ranks - 1); ++step) {
      const int sent = (rank - step + 2 * ranks) % ranks;
      const int received = (sent + ranks - 1) % ranks;
      program.begin_step();
      program.send(right, {.first = sent});
      const Rank sum[] = {left, kOwn};
      if (step < ranks - 1) {
        program.receive_reduce({.first = received}, sum);
      } else {
        program.receive_copy(left, {.first = received});
      }
    }
    schedule.programs.push_back(program);
  }
  return schedule;
}

std::set<std::string> faults_seen(const Schedule& schedule) {
  std::mt19937_64 random{1};
  std::set<std::string> faults;
  for (const bool window_of_one : {false, true}) {
    const Events events = events_of(schedule, window_of_one);
    for (int i = 0; i < kRuns; ++i) faults.insert(run<Number>(schedule, events, random));
  }
  return faults;
}

TEST(Interpreter, FindsARingRight) {
  for (int ranks = 2; ranks <= 9; ++ranks)
    EXPECT_EQ(faults_seen(ring_by_hand(ranks)), std::set<std::string>{""}) << ranks << " ranks";
}

TEST(Interpreter, ShowsARaceInSomeInterleavingOnly) {
  // Rank 0 forwards chunk 0 in the step in which it receives it.
  Schedule schedule{
      "race", {.collective = Collective::Broadcast, .ranks = 3, .root = 1}, false, {}};
  schedule.programs.assign(3, Program{Layout{1}});
  for (Program& program : schedule.programs) program.begin_step();
  schedule.programs[1].send(0, {});
  schedule.programs[0].receive_copy(1, {});
  schedule.programs[0].send(2, {});
  schedule.programs[2].receive_copy(0, {});
  EXPECT_EQ(faults_seen(schedule), (std::set<std::string>{"", "read of nothing"}));
  EXPECT_TRUE(events_of(schedule, false).race);
}

TEST(Interpreter, IsStuckOnlyUnderAWindowOfOneWhenAPairsOrderIsAgainstDataflow) {
  // Rank 1 sums up a message of rank 0 and one of rank 2, which waits for chunk 1 from rank 1,
  // which has it from the second message of rank 0.
  Schedule schedule{"window", {.collective = Collective::AllReduce, .ranks = 3}, false, {}};
  schedule.programs.assign(3, Program{Layout{2}, {"aside"}});
  Program& zero = schedule.programs[0];
  Program& one = schedule.programs[1];
  Program& two = schedule.programs[2];
  zero.begin_step();
  zero.send(1, {0, 0, 2});
  zero.send(1, {0, 1, 1});
  one.begin_step();
  const Rank sum[] = {0, 2};
  one.receive_reduce({1, 0, 2}, sum);
  one.receive_copy(0, {0, 1, 1});
  one.begin_step();
  one.send(2, {0, 1, 1});
  two.begin_step();
  two.receive_copy(1, {0, 1, 1});
  two.begin_step();
  two.send(1, {0, 0, 2});
  EXPECT_EQ(faults_seen(schedule), (std::set<std::string>{"stuck", "wrong output"}));
}

TEST(Interpreter, SeesAnotherAssociationAsOtherBits) {
  const auto sum = [](Number left, const Number& right) { return left += right; };
  const Number a{0, 0};
  const Number b{1, 0};
  const Number c{2, 0};
  EXPECT_EQ(sum(sum(a, b), c), sum(c, sum(b, a)));
  EXPECT_NE(sum(sum(a, b), c), sum(a, sum(b, c)));
  EXPECT_TRUE(sum(sum(a, b), c).adds_up_to(sum(a, sum(b, c))));
}

}  // namespace
}  // namespace sluice::mutation
