#include "sluice/verify.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::schedule {
namespace {

constexpr Range kAll{};
constexpr std::array<Rank, 2> kOwnAnd0{kOwn, 0};
constexpr std::array<Rank, 2> kOwnAnd1{kOwn, 1};
constexpr std::array<BufferId, 2> kBoth{0, 1};

// Two ranks exchange their buffer and add: the smallest all-reduce.
Program exchange(Rank peer) {
  Program program{Chunking{1}, {"in"}};
  program.begin_step();
  program.send(peer, kAll);
  program.receive_copy(peer, {1});
  program.local_reduce(kAll, kBoth);
  return program;
}

Schedule two(Program rank_0, Program rank_1, Collective collective = Collective::AllReduce) {
  return {"by_hand",
          {.collective = collective, .ranks = 2},
          false,
          {std::move(rank_0), std::move(rank_1)}};
}

TEST(Verify, ProvesAnExchangeOfTwo) {
  const Proof proof = verify(two(exchange(1), exchange(0)));
  EXPECT_TRUE(proof.proven) << proof.reason;
  EXPECT_EQ(proof.steps, 1);
  EXPECT_EQ(proof.transfers, 2);
  EXPECT_EQ(proof.bytes_factor, Fraction{1});
}

TEST(Verify, NamesRankStepAndChunkOfAnError) {
  Program incomplete{Chunking{1}, {"in"}};
  incomplete.begin_step();
  incomplete.send(1, kAll);
  incomplete.receive_copy(1, {1});  // and it never adds it
  const Proof proof = verify(two(incomplete, exchange(0)));
  EXPECT_FALSE(proof.proven);
  EXPECT_EQ(proof.reason,
            "rank 0, after the last step, chunk 0: the result lacks the contribution of rank 1");
}

TEST(Verify, RejectsAReadOfAChunkThatIsWrittenInTheSameStep) {
  Program racing{Chunking{1}, {"in"}};
  racing.begin_step();
  racing.send(1, kAll);
  racing.receive_reduce(kAll, kOwnAnd1);
  Program other{Chunking{1}, {"in"}};
  other.begin_step();
  other.send(0, kAll);
  other.receive_reduce(kAll, kOwnAnd0);
  EXPECT_EQ(verify(two(racing, other)).reason,
            "rank 0, step 1, chunk 0: race: another transfer of this step touches buffer while it "
            "is written");
}

TEST(Verify, FindsTwoRanksThatWaitForEachOther) {
  // Each receives into the buffer one step before it sends the buffer.
  const auto program = [](Rank peer) {
    Program waits{Chunking{1}};
    waits.begin_step();
    waits.receive_copy(peer, kAll);
    waits.begin_step();
    waits.send(peer, kAll);
    return waits;
  };
  const Proof proof = verify(two(program(1), program(0)));
  EXPECT_FALSE(proof.proven);
  EXPECT_NE(proof.reason.find("deadlock"), std::string::npos) << proof.reason;
}

TEST(Verify, RejectsSumsThatRanksAddInDifferentOrders) {
  // Rank 0 sends its sum (0 + 1) + 2 to rank 1; rank 2 computes 0 + (1 + 2) itself.
  Program a{Chunking{1}, {"in", "pair"}};
  Program b = a;
  Program c = a;
  const std::array<Rank, 3> sum_at_0{kOwn, 1, 2};
  a.begin_step();
  a.send(2, kAll);
  a.begin_step();
  a.receive_reduce(kAll, sum_at_0);
  a.begin_step();
  a.send(1, kAll);
  b.begin_step();
  b.send(2, kAll);
  b.begin_step();
  b.send(0, kAll);
  b.begin_step();
  b.receive_copy(0, kAll);
  const std::array<BufferId, 2> first_then_pair{1, 2};
  c.begin_step();
  c.receive_copy(0, {1});
  c.begin_step();
  c.send(0, kAll);
  c.begin_step();
  c.receive_copy(1, {2});
  const std::array<BufferId, 2> own_and_pair{0, 2};
  c.local_reduce({2}, own_and_pair);
  c.local_reduce(kAll, first_then_pair);
  const Proof proof = verify({"by_hand", {.ranks = 3}, false, {a, b, c}});
  EXPECT_EQ(proof.reason,
            "rank 2, after the last step, chunk 0: the result was added in another order than "
            "on rank 0, so the bits may differ");
}

TEST(Verify, RejectsImpossibleSchedulesWithoutACrash) {
  EXPECT_FALSE(verify({"empty", {.ranks = 0}, false, {}}).proven);
  EXPECT_FALSE(verify({"missing", {.ranks = 2}, false, {exchange(1)}}).proven);
  EXPECT_FALSE(verify({"root",
                       {.collective = Collective::Reduce, .ranks = 2, .root = 5},
                       false,
                       {exchange(1), exchange(0)}})
                   .proven);
  Program wild{Chunking{1}, {"in"}};
  wild.begin_step();
  wild.send(77, {.buffer = -4, .first = 9, .count = 2'000'000'000});
  wild.receive_copy(-9, {.buffer = 99});
  EXPECT_FALSE(verify(two(wild, exchange(0))).proven);
  Program other_layout{Chunking{2}, {"in"}};
  EXPECT_FALSE(verify(two(other_layout, exchange(0))).proven);
}

TEST(Verify, AcceptsOneRankWithoutSteps) {
  for (const Collective collective : kCollectives) {
    const Proof proof = verify({"alone", {.collective = collective}, true, {Program{Chunking{3}}}});
    EXPECT_TRUE(proof.proven) << name(collective) << ": " << proof.reason;
  }
}

TEST(Fraction, IsInLowestTerms) {
  EXPECT_EQ(Fraction(6, 4), Fraction(3, 2));
  EXPECT_EQ(Fraction(0, 7), Fraction(0));
  EXPECT_EQ(to_string(Fraction(6, 4)), "3/2");
  EXPECT_EQ(to_string(Fraction(4, 2)), "2");
}

TEST(Fraction, AddsMultipliesAndCompares) {
  EXPECT_EQ(Fraction(1, 3) + Fraction(1, 6), Fraction(1, 2));
  EXPECT_EQ(Fraction(2, 3) * Fraction(9, 4), Fraction(3, 2));
  EXPECT_LT(Fraction(1, 3), Fraction(1, 2));
  EXPECT_GT(Fraction(1022, 512), Fraction(1021, 512));
  EXPECT_DOUBLE_EQ(Fraction(3, 8).value(), 0.375);
}

}  // namespace
}  // namespace sluice::schedule
