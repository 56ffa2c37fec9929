// mutation_test.cc - every mutant of every built-in schedule, and every pair of mutations of small
// schedules.
//
// If verify() accepts a mutant, every run of the interpreter must be right. Nearly all mutants that
// it rejects must fail in the interpreter or have a race; a race does not show in every run. This
// shows that verify() is not too strict and that the interpreter finds faults. The interpreter does
// not find values that are never used.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/algorithms.h"
#include "sluice/schedule.h"
#include "sluice/verify.h"
#include "tests/mutation/interpreter.h"
#include "tests/mutation/mutants.h"

namespace sluice::mutation {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLUICE_SANITIZED
#endif
#endif
#if defined(SLUICE_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMostRanks = 5;  // sanitized code is ten times slower
#else
constexpr int kMostRanks = 9;
#endif
constexpr int kRuns = 100;  // of the interpreter, each in another order
constexpr int kRunsOfRejected = 8;
constexpr std::size_t kMostToPair =
    150;  // mutants of a schedule; the number of pairs is its square
constexpr int kThreads = 2;
constexpr std::size_t kMostFailures = 5;  // printed per algorithm

enum class Mutations : std::uint8_t { One, Two };

struct Counts {
  std::int64_t schedules = 0;
  std::int64_t mutants = 0;
  std::int64_t rejected = 0;
  std::int64_t shown = 0;  // rejected mutants that fail in some run
  std::int64_t races = 0;  // other rejected mutants that have a race
  std::int64_t accepted = 0;
  std::int64_t confirmed = 0;  // accepted mutants that are right in every run

  Counts& operator+=(const Counts& other) {
    schedules += other.schedules;
    mutants += other.mutants;
    rejected += other.rejected;
    accepted += other.accepted;
    confirmed += other.confirmed;
    shown += other.shown;
    races += other.races;
    return *this;
  }
};

void print_heading() {
  std::printf("%-34s %-14s %7s %7s %9s %9s %9s %9s %9s %9s\n", "algorithm", "collective", "at once",
              "shapes", "mutants", "rejected", "shown", "races", "accepted", "confirmed");
}

void print_row(const std::string& algorithm, std::string_view collective, Mutations mutations,
               const Counts& counts) {
  std::printf("%-34s %-14.*s", algorithm.c_str(), static_cast<int>(collective.size()),
              collective.data());
  std::printf(" %7d %7lld", mutations == Mutations::One ? 1 : 2,
              static_cast<long long>(counts.schedules));
  for (const std::int64_t count : {counts.mutants, counts.rejected, counts.shown, counts.races,
                                   counts.accepted, counts.confirmed})
    std::printf(" %9lld", static_cast<long long>(count));
  std::printf("\n");
}

std::string text_of(const Schedule& schedule) {
  std::ostringstream text;
  print_schedule(text, schedule);
  return text.str();
}

std::string describe(const Shape& shape) {
  std::string text = std::string{name(shape.collective)} + ", " + std::to_string(shape.ranks) +
                     " ranks, root " + std::to_string(shape.root) + ", segments " +
                     std::to_string(shape.segments) + ", grid";
  for (const int ranks : shape.grid) text += " " + std::to_string(ranks);
  return text;
}

std::vector<std::vector<int>> grids_of(const Algorithm& algorithm, int ranks) {
  if (!algorithm.uses_grid) return {{}};
  std::vector<std::vector<int>> grids;
  for (int rows = 1; rows <= ranks; ++rows)
    if (ranks % rows == 0) grids.emplace_back(static_cast<std::size_t>(rows), ranks / rows);
  if (algorithm.name == "torus") return grids;
  for (const std::vector<int>& ragged : std::vector<std::vector<int>>{
           {1, 2}, {3, 1}, {3, 2}, {2, 3, 1}, {1, 1, 2, 2}, {3, 4}, {2, 1, 2, 2, 1}, {4, 5}})
    if (std::accumulate(ragged.begin(), ragged.end(), 0) == ranks) grids.push_back(ragged);
  return grids;
}

std::vector<Shape> shapes_of(const Algorithm& algorithm) {
  std::vector<Shape> shapes;
  for (const Collective collective : algorithm.collectives) {
    const bool rooted = collective == Collective::Broadcast || collective == Collective::Reduce;
    for (int ranks = 2; ranks <= kMostRanks; ++ranks)
      for (const std::vector<int>& grid : grids_of(algorithm, ranks))
        for (const Rank root : rooted ? std::vector{0, ranks - 1} : std::vector{0})
          for (const int segments : algorithm.uses_segments ? std::vector{1, 2, 4} : std::vector{1})
            shapes.push_back({collective, ranks, grid, root, segments});
  }
  // Largest first, so that both threads end at about the same time.
  std::reverse(shapes.begin(), shapes.end());
  return shapes;
}

std::size_t count_mutants(const Schedule& schedule) {
  std::size_t count = 0;
  for_each_mutant(schedule, [&](const Schedule&, const std::string&) { ++count; });
  return count;
}

// The result of some runs of the interpreter, half of them with a window of one.
struct Outcome {
  std::string fault;  // of the first run that failed, or ""
  bool race;
};

Outcome interpret(const Schedule& schedule, int runs, std::mt19937_64& random) {
  Outcome outcome{"", false};
  for (const bool window_of_one : {false, true}) {
    const Events events = events_of(schedule, window_of_one);
    outcome.race = events.race;
    for (int i = 0; i < runs / 2; ++i) {
      outcome.fault = run<Number>(schedule, events, random);
      if (schedule.ordered && outcome.fault.empty())
        outcome.fault = run<Term>(schedule, events, random);
      if (!outcome.fault.empty()) return outcome;
    }
  }
  return outcome;
}

// Checks the mutants of all shapes of one algorithm, on kThreads threads.
class MutantCheck {
 public:
  MutantCheck(const Algorithm& algorithm, Mutations mutations)
      : algorithm_{algorithm}, mutations_{mutations}, shapes_{shapes_of(algorithm)} {}

  void run() {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([this] { take_shapes(); });
    for (std::thread& thread : threads) thread.join();
  }

  const std::map<Collective, Counts>& counts() const { return counts_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  void take_shapes() {
    for (std::size_t i = next_++; i < shapes_.size(); i = next_++) {
      const Counts counts = check(shapes_[i], i);
      const std::lock_guard lock{mutex_};
      counts_[shapes_[i].collective] += counts;
    }
  }

  Counts check(const Shape& requested, std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const Shape shape = complete_shape(algorithm_, requested).value();
    const Schedule schedule = build_schedule(algorithm_, shape);
    const Proof proof = verify(schedule);
    if (!proof.proven) fail(schedule, "not mutated", "is not proven: " + proof.reason);
    const Outcome outcome = interpret(schedule, kRuns, random);
    if (!outcome.fault.empty() || outcome.race)
      fail(schedule, "not mutated", "fails: " + outcome.fault);

    Counts counts{.schedules = 1};
    const auto check_mutant = [&](const Schedule& mutant, const std::string& description) {
      if (mutant == schedule) return;  // it swapped two equal operations, or undid a mutation
      compare(mutant, description, random, counts);
    };
    if (mutations_ == Mutations::One) {
      for_each_mutant(schedule, check_mutant);
    } else if (count_mutants(schedule) <= kMostToPair) {
      for_each_mutant(schedule, [&](const Schedule& mutant, const std::string& first) {
        for_each_mutant(mutant, [&](const Schedule& again, const std::string& second) {
          check_mutant(again, first + "; " + second);
        });
      });
    } else {
      counts.schedules = 0;
    }
    return counts;
  }

  void compare(const Schedule& mutant, const std::string& description, std::mt19937_64& random,
               Counts& counts) {
    ++counts.mutants;
    const Proof proof = verify(mutant);
    const int runs = proof.proven ? kRuns : kRunsOfRejected;
    const Outcome outcome = interpret(mutant, runs, random);
    if (proof.proven) {
      ++counts.accepted;
      if (outcome.fault.empty() && !outcome.race) {
        ++counts.confirmed;
      } else {
        fail(mutant, description, "is accepted and wrong: " + outcome.fault);
      }
      return;
    }
    if (proof.reason.empty() || proof.reason.find('\n') != std::string::npos)
      fail(mutant, description, "is rejected without a reason in one line: " + proof.reason);
    ++counts.rejected;
    if (!outcome.fault.empty()) {
      ++counts.shown;
    } else if (outcome.race) {
      ++counts.races;
    }
  }

  void fail(const Schedule& schedule, const std::string& description, const std::string& what) {
    const std::lock_guard lock{mutex_};
    if (++failed_ > kMostFailures) return;
    failures_.push_back(describe(schedule.shape) + "; " + description + "\n" + what + "\n" +
                        text_of(schedule));
  }

  const Algorithm& algorithm_;
  const Mutations mutations_;
  const std::vector<Shape> shapes_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // protects the members below
  std::map<Collective, Counts> counts_;
  std::vector<std::string> failures_;
  std::size_t failed_ = 0;
};

class Mutation : public testing::TestWithParam<const Algorithm*> {
 protected:
  static void SetUpTestSuite() { print_heading(); }
  static void TearDownTestSuite() {
    for (const auto& [mutations, counts] : totals) print_row("all", "", mutations, counts);
  }

  static void check(Mutations mutations) {
    const std::string algorithm{GetParam()->name};
    MutantCheck mutants{*GetParam(), mutations};
    mutants.run();
    for (const std::string& failure : mutants.failures())
      ADD_FAILURE() << algorithm << ", " << failure;

    Counts sum;
    for (const auto& [collective, counts] : mutants.counts()) {
      print_row(algorithm, name(collective), mutations, counts);
      EXPECT_GT(counts.mutants, 0);
      EXPECT_EQ(counts.accepted, counts.confirmed);
      sum += counts;
    }
    EXPECT_GE(10 * sum.shown, 8 * sum.rejected) << "the interpreter misses too much";
    EXPECT_GE(100 * (sum.shown + sum.races), 99 * sum.rejected) << "verify() is too strict";
    totals[mutations] += sum;
  }

  static std::map<Mutations, Counts> totals;
};

std::map<Mutations, Counts> Mutation::totals;

TEST_P(Mutation, IsRejectedByVerifyOrRightInTheInterpreter) { check(Mutations::One); }

TEST_P(Mutation, OnTopOfAnotherIsRejectedByVerifyOrRightInTheInterpreter) { check(Mutations::Two); }

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : built_in_algorithms()) all.push_back(&algorithm);
  return all;
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  std::string text{info.param->name};
  std::replace(text.begin(), text.end(), ':', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Mutation, testing::ValuesIn(all_algorithms()), test_name);

}  // namespace
}  // namespace sluice::mutation
