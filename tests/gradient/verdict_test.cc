#include "gradient/verdict.h"

#include <gtest/gtest.h>

namespace sluice::gradient {
namespace {

const std::vector<GradientSpec> kGradients = {{"w", 10}, {"b", 5}, {"d", 5, DataType::F64}};
constexpr WireConversion kF16{.wire = WireType::F16, .ranks = 3, .wire_scale = 8};
constexpr WireConversion kScaled{.ranks = 3, .loss_scale = 4, .loss_scaled = true};

std::vector<Faults> at_rank(std::size_t rank, const Faults& faults) {
  std::vector<Faults> ranks(6);
  ranks[rank] = faults;
  return ranks;
}

TEST(Verdict, IsSilentWhereAllIsWell) {
  const Verdict verdict = judge(std::vector<Faults>(3), {}, kF16, kGradients);
  EXPECT_FALSE(verdict.skipped || verdict.lower_wire_scale || verdict.lower_loss_scale);
  EXPECT_EQ(verdict.warning, "");
}

TEST(Verdict, AnOverflowOnTheWireLowersTheWireScaleAlone) {
  WireConversion passage = kF16;
  passage.loss_scaled = true;
  const Verdict verdict = judge(at_rank(1, {.overflowed = 3, .first = 0, .in_first = 1}),
                                {.on_wire = 0}, passage, kGradients);
  EXPECT_TRUE(verdict.skipped);
  EXPECT_TRUE(verdict.lower_wire_scale);
  EXPECT_FALSE(verdict.lower_loss_scale);
  EXPECT_EQ(verdict.warning,
            "1 value of \"w\" and 2 of others overflowed at rank 1 (f16 wire, scale 2^3)");
}

TEST(Verdict, WhatWasNotFiniteBeforeTheWireLowersTheLossScaleAlone) {
  WireConversion passage = kF16;
  passage.loss_scaled = true;
  const Verdict verdict = judge(at_rank(2, {.not_finite = 2, .first = 1, .in_first = 2}),
                                {.on_wire = 1}, passage, kGradients);
  EXPECT_TRUE(verdict.skipped);
  EXPECT_FALSE(verdict.lower_wire_scale);
  EXPECT_TRUE(verdict.lower_loss_scale);
  EXPECT_EQ(verdict.warning, "2 values of \"b\" were not finite at rank 2 (f16 wire, scale 2^3)");
}

TEST(Verdict, ASumAloneIsTheWiresFaultOnTheWireAndElseTheLossScales) {
  Verdict verdict = judge(std::vector<Faults>(3), {.on_wire = 1}, kF16, kGradients);
  EXPECT_TRUE(verdict.skipped && verdict.lower_wire_scale);
  EXPECT_EQ(verdict.warning, "the sum of \"b\" over the ranks overflowed (f16 wire, scale 2^3)");
  verdict = judge(std::vector<Faults>(3), {.in_pool = 2}, kScaled, kGradients);
  EXPECT_TRUE(verdict.skipped && verdict.lower_loss_scale);
  EXPECT_FALSE(verdict.lower_wire_scale);
  EXPECT_EQ(verdict.warning, "the sum of \"d\" over the ranks overflowed");
}

TEST(Verdict, Bf16HasNoScaleOfItsOwn) {
  WireConversion passage{.wire = WireType::BF16, .ranks = 3};
  const auto ranks = at_rank(0, {.overflowed = 1, .first = 0, .in_first = 1});
  EXPECT_FALSE(judge(ranks, {}, passage, kGradients).skipped);
  passage.loss_scaled = true;
  const Verdict verdict = judge(ranks, {.on_wire = 0}, passage, kGradients);
  EXPECT_TRUE(verdict.skipped && verdict.lower_loss_scale);
  EXPECT_FALSE(verdict.lower_wire_scale);
}

TEST(Verdict, NamesFourRanksAndCountsTheOthers) {
  const std::vector<Faults> ranks(6, {.not_finite = 1, .first = 2, .in_first = 1});
  const std::string warning = judge(ranks, {.in_pool = 2}, kScaled, kGradients).warning;
  EXPECT_NE(warning.find("1 value of \"d\" was not finite at rank 3; and at 2 more ranks"),
            std::string::npos)
      << warning;
}

}  // namespace
}  // namespace sluice::gradient
