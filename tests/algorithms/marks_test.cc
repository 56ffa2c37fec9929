// The marks of every built-in algorithm: the closed forms against those of the schedule, and the
// marks of small schedules against those that a person finds.
#include "schedule/marks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "schedule/dataflow.h"
#include "sluice/algorithms.h"

namespace sluice::algorithms {
namespace {

using schedule::OperationMarks;

std::vector<OperationMarks> marks_in(const Schedule& of) {
  std::vector<OperationMarks> marks;
  const Proof proof = schedule::verify_and_mark(of, marks);
  EXPECT_TRUE(proof.proven) << proof.reason;
  return marks;
}

void expect_closed_form(const Algorithm& algorithm, const Shape& requested) {
  const Result<Shape> shape = complete_shape(algorithm, requested);
  if (!shape.ok()) return;  // a torus has no ragged grid
  const Schedule whole = build_schedule(algorithm, shape.value());
  const std::vector<OperationMarks> expected = marks_in(whole);
  for (Rank rank = 0; rank < requested.ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    EXPECT_EQ(schedule::apply(algorithm.marks(shape.value(), rank), whole.programs[r]), expected[r])
        << algorithm.name << ", " << name(requested.collective) << ", rank " << rank << " of "
        << requested.ranks << ", root " << requested.root << ", " << requested.segments
        << " segments, " << shape.value().grid.size() << " nodes";
  }
}

TEST(Marks, OfEveryAlgorithmAreThoseOfItsSchedules) {
  constexpr int kMostRanks = 17;
  for (const Algorithm& algorithm : built_in_algorithms()) {
    for (const Collective collective : algorithm.collectives) {
      for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
        for (const int segments : {1, 2, 4}) {
          if (segments > 1 && !algorithm.uses_segments) break;
          for (Rank root = 0; root < ranks; root += has_root(collective) ? 3 : ranks)
            expect_closed_form(algorithm, {collective, ranks, {}, root, segments});
        }
      }
    }
  }
}

TEST(Marks, OfEveryAlgorithmOnAGridAreThoseOfItsSchedules) {
  const std::vector<std::vector<int>> grids{{1},       {5},          {1, 1},    {2, 2},
                                            {1, 2},    {3, 5},       {7, 7},    {4, 4, 4},
                                            {2, 1, 3}, {1, 1, 1, 1}, {5, 2, 3}, {2, 2, 2, 2, 2}};
  for (const Algorithm& algorithm : built_in_algorithms()) {
    if (!algorithm.uses_grid) continue;
    for (const std::vector<int>& grid : grids) {
      const int ranks = std::accumulate(grid.begin(), grid.end(), 0);
      for (const int segments : {1, 2})
        expect_closed_form(algorithm, {Collective::AllReduce, ranks, grid, 0, segments});
    }
  }
}

// The number of whole sums and pushes of each rank.
struct Numbers {
  std::vector<int> whole_sums;
  std::vector<int> pushes;
  friend bool operator==(const Numbers&, const Numbers&) = default;
};

Numbers numbers_of(const char* name, const Shape& requested) {
  const Algorithm& algorithm = *find_algorithm(name).value();
  Numbers numbers;
  for (const OperationMarks& marks :
       marks_in(build_schedule(algorithm, complete_shape(algorithm, requested).value()))) {
    const auto count = [](const std::vector<bool>& bits) {
      return static_cast<int>(std::count(bits.begin(), bits.end(), true));
    };
    numbers.whole_sums.push_back(count(marks.whole_sums));
    numbers.pushes.push_back(count(marks.pushes));
  }
  return numbers;
}

TEST(Marks, AreWhereAPersonFindsThem) {
  EXPECT_EQ(numbers_of("direct", {.ranks = 3}), (Numbers{{1, 1, 1}, {2, 2, 2}}))
      << "a rank completes its slice and returns it to the two others";
  EXPECT_EQ(numbers_of("direct", {.collective = Collective::Broadcast, .ranks = 3}),
            (Numbers{{0, 0, 0}, {0, 0, 0}}))
      << "nothing is added";
  EXPECT_EQ(numbers_of("direct", {.collective = Collective::Reduce, .ranks = 3, .root = 1}),
            (Numbers{{1, 1, 1}, {1, 0, 1}}))
      << "only to the root";
  EXPECT_EQ(numbers_of("ring", {.ranks = 2}), (Numbers{{1, 1}, {1, 1}}));
  EXPECT_EQ(numbers_of("ring", {.ranks = 3}), (Numbers{{1, 1, 1}, {0, 0, 0}}))
      << "the next rank is no source of the sum";
  EXPECT_EQ(numbers_of("exchange", {.ranks = 3}), (Numbers{{1, 1, 1}, {0, 0, 0}}))
      << "a local sum reads no peer's buffer";
  EXPECT_EQ(numbers_of("recursive_doubling", {.ranks = 3}), (Numbers{{1, 1, 0}, {0, 0, 0}}))
      << "rank 2 has no sums";
  EXPECT_EQ(numbers_of("halving_doubling", {.ranks = 4}), (Numbers{{1, 1, 1, 1}, {1, 1, 1, 1}}));
  // In tree A rank 1 is the top, above 0 and 2. Tree B has the ranks 1, 2, 0 in this order: rank 2
  // is the top.
  EXPECT_EQ(numbers_of("double_tree", {.ranks = 3}), (Numbers{{0, 1, 1}, {0, 2, 2}}));
}

// Rank 0 adds up the buffers of all ranks and sends the sum back.
Schedule star(int ranks) {
  Schedule star{"star", {.ranks = ranks}, false, {}};
  Program centre{Chunking{1}};
  std::vector<Rank> all{kOwn};
  for (Rank rank = 1; rank < ranks; ++rank) all.push_back(rank);
  centre.begin_step();
  centre.receive_reduce({}, all);
  centre.begin_step();
  for (Rank rank = 1; rank < ranks; ++rank) centre.send(rank, {});
  star.programs.push_back(std::move(centre));
  for (Rank rank = 1; rank < ranks; ++rank) {
    Program& leaf = star.programs.emplace_back(Chunking{1});
    leaf.begin_step();
    leaf.send(0, {});
    leaf.begin_step();
    leaf.receive_copy(0, {});
  }
  return star;
}

TEST(Marks, OfAStarFromAFileAreFoundInTheSchedule) {
  for (const int ranks : {2, 3, 7}) {
    const std::vector<OperationMarks> marks = marks_in(star(ranks));
    std::vector<bool> pushes(static_cast<std::size_t>(ranks), true);
    pushes[0] = false;  // the receive
    EXPECT_EQ(marks[0].pushes, pushes);
    EXPECT_EQ(std::count(marks[0].whole_sums.begin(), marks[0].whole_sums.end(), true), 1);
    EXPECT_TRUE(marks[0].whole_sums[0]);
    for (std::size_t rank = 1; rank < marks.size(); ++rank)
      EXPECT_EQ(marks[rank], (OperationMarks{{false, false}, {false, false}}));
  }
}

TEST(Marks, ABufferThatAnotherPeerStillReadsIsNotPushedInto) {
  // Rank 1 also sends its buffer to rank 2, which keeps it in scratch and adds it itself. Storing
  // the sum of rank 0 early would change what rank 2 receives.
  Schedule schedule{"busy", {.ranks = 3}, false, {}};
  const std::vector<std::string> scratch{"kept", "other"};
  for (int rank = 0; rank < 3; ++rank) schedule.programs.emplace_back(Chunking{1}, scratch);
  for (Program& program : schedule.programs) program.begin_step();
  Program& zero = schedule.programs[0];
  Program& one = schedule.programs[1];
  Program& two = schedule.programs[2];
  one.send(0, {});
  one.send(2, {});
  two.send(0, {});
  zero.send(2, {});
  two.receive_copy(1, {1});
  two.receive_copy(0, {2});
  const BufferId sum[] = {2, 1, 0};  // rank 0, 1, 2
  two.local_reduce({}, sum);
  for (Program& program : schedule.programs) program.begin_step();
  const Rank in_order[] = {kOwn, 1, 2};
  zero.receive_reduce({}, in_order);
  for (Program& program : schedule.programs) program.begin_step();
  zero.send(1, {});
  one.receive_copy(0, {});
  const std::vector<OperationMarks> marks = marks_in(schedule);
  EXPECT_EQ(marks[0].pushes, (std::vector<bool>{false, false, false}));
  EXPECT_EQ(marks[0].whole_sums, (std::vector<bool>{false, true, false}));
}

TEST(Marks, AWrongClosedFormIsRefused) {
  for (const bool wrong_push : {false, true}) {
    Algorithm wrong = *find_algorithm("direct").value();
    wrong.marks = wrong_push ? [](const Shape&, Rank) -> Marks {
      return {.whole_sum = [](int, const Range&) { return true; },
              .push = [](int, const Range& range) { return range.first != 1; }};
    }
    : [](const Shape& shape, Rank rank) -> Marks {
        Marks marks = find_algorithm("direct").value()->marks(shape, rank);
        if (rank == 2) marks.whole_sum = {};
        return marks;
      };
    const Proof proof = prove(wrong, {.ranks = 3});
    EXPECT_FALSE(proof.proven);
    EXPECT_NE(proof.reason.find("other whole sums or pushes than the closed form of direct"),
              std::string::npos)
        << proof.reason;
  }
}

}  // namespace
}  // namespace sluice::algorithms
