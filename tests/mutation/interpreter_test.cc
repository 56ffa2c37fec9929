// interpreter_test.cc - tests the oracle itself, on schedules small enough to know the answer.
#include "tests/mutation/interpreter.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "sluice/schedule.h"

namespace sluice::mutation {
namespace {

constexpr int kRuns = 50;
constexpr bool kUnbounded = false;
constexpr bool kWindowOfOne = true;

using Faults = std::set<std::string>;

template <class Value>
Faults faults_of(const Schedule& schedule, bool window_of_one) {
  const Events events = events_of(schedule, window_of_one);
  std::mt19937_64 random{1};
  Faults faults;
  for (int i = 0; i < kRuns; ++i) faults.insert(run<Value>(schedule, events, random));
  return faults;
}

Schedule read_canary(const std::string& name) {
  std::ifstream file{SLUICE_SOURCE_DIR "/tests/mutation/canaries/" + name + ".txt"};
  return parse_schedule(file).value();
}

// An all_reduce ring: rank r sends chunk r - step, then sends on the chunks that it receives.
Schedule ring_by_hand(int ranks) {
  Schedule schedule{"by_hand", {.collective = Collective::AllReduce, .ranks = ranks}, false, {}};
  for (Rank rank = 0; rank < ranks; ++rank) {
    Program program{Chunking{ranks}};
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

TEST(Interpreter, AcceptsARing) {
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (const bool window_of_one : {kUnbounded, kWindowOfOne})
      EXPECT_EQ(faults_of<Number>(ring_by_hand(ranks), window_of_one), Faults{""}) << ranks;
}

TEST(Interpreter, NamesTheFault) {
  const std::pair<const char*, const char*> canaries[] = {
      {"receive_without_send", "malformed"},
      {"send_without_receive", "malformed"},
      {"chunk_mismatch", "malformed"},
      {"deadlock_cycle", "stuck"},
      {"uninitialised_scratch", "read of nothing"},
      {"wrong_root", "read of nothing"},
      {"double_count", "wrong output"},
      {"dropped_transfer", "wrong output"},
      {"different_association", "ranks disagree"},
  };
  for (const auto& [name, fault] : canaries)
    EXPECT_EQ(faults_of<Number>(read_canary(name), kUnbounded), Faults{fault}) << name;
}

TEST(Interpreter, FindsAWrongOrderOfASumByItsTerms) {
  for (const char* name : {"wrong_order", "right_order_wrong_association"}) {
    EXPECT_EQ(faults_of<Number>(read_canary(name), kUnbounded), Faults{""}) << name;
    EXPECT_EQ(faults_of<Term>(read_canary(name), kUnbounded), Faults{"wrong output"}) << name;
  }
}

TEST(Interpreter, IsStuckOnlyWithAWindowOfOneIfTheOrderOfAPairContradictsDataflow) {
  const Schedule schedule = read_canary("window_deadlock");
  EXPECT_EQ(faults_of<Number>(schedule, kUnbounded), Faults{"wrong output"});
  EXPECT_EQ(faults_of<Number>(schedule, kWindowOfOne), Faults{"stuck"});
}

TEST(Interpreter, ShowsARaceInSomeRunsOnly) {
  // Rank 0 forwards its chunk in the step in which it receives it.
  Schedule schedule{
      "race", {.collective = Collective::Broadcast, .ranks = 3, .root = 1}, false, {}};
  schedule.programs.assign(3, Program{Chunking{1}});
  for (Program& program : schedule.programs) program.begin_step();
  schedule.programs[1].send(0, {});
  schedule.programs[0].receive_copy(1, {});
  schedule.programs[0].send(2, {});
  schedule.programs[2].receive_copy(0, {});
  EXPECT_EQ(faults_of<Number>(schedule, kUnbounded), (Faults{"", "read of nothing"}));
  EXPECT_TRUE(events_of(schedule, kUnbounded).race);
}

TEST(Number, IsCommutativeButNotAssociative) {
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
