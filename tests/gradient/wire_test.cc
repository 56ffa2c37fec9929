// Compares the 16-bit wire and loss scaling with a reference that narrows, adds and widens values
// one by one.
#include "gradient/wire/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gradient/reducer.h"
#include "tests/engine/ranks.h"
#include "tests/gradient/model.h"

namespace sluice::gradient {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Results, skipped steps and both scales equal the reference; every rank's warning contains
// `warnings[step]`.
void expect_as_reference(const ToyModel& model, int ranks, const GradientOptions& options,
                         int steps, const std::vector<std::string>& warnings = {}) {
  ReferenceMeans reference{model, ranks, options};
  std::vector<ReferenceMeans::StepResult> averages;
  for (int step = 0; step < steps; ++step) averages.push_back(reference.run_step(step));
  engine::run_ranks(ranks, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    for (int step = 0; step < steps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step << ", rank " << comm.rank());
      const ReferenceMeans::StepResult& expected = averages[static_cast<std::size_t>(step)];
      ASSERT_EQ(reducer.loss_scale(), expected.loss_scale);
      ASSERT_EQ(reducer.state().wire_scale, expected.wire_scale);
      model.write_all(reducer, comm.rank(), step);
      const FinishedStep finished = reducer.finish();
      ASSERT_EQ(finished.skipped, expected.skipped) << finished.warning;
      if (!finished.skipped) expect_results(reducer, model, expected.means);
      const auto number = static_cast<std::size_t>(step);
      if (number < warnings.size() && !warnings[number].empty()) {
        ASSERT_NE(finished.warning.find(warnings[number]), std::string::npos) << finished.warning;
      } else {
        ASSERT_EQ(finished.warning, "");
      }
    }
  });
}

GradientOptions forced(WireType wire, std::size_t theta = 4000) {
  return {.theta = theta, .wire = wire, .force_wire = true, .algorithm = "direct"};
}

TEST(Wire, AveragesAsTheReferenceDoes) {
  for (const WireType wire : {WireType::F16, WireType::BF16}) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      for (const std::size_t theta : {std::size_t{1}, std::size_t{4000}, std::size_t{1} << 40U}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, theta " << theta);
        expect_as_reference(mixed_model(), ranks, forced(wire, theta), 3);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Wire, IsNotUsedInsideANodeUnlessForced) {
  const ToyModel model = plain_model();
  const GradientOptions options{.wire = WireType::F16, .algorithm = "direct"};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    ReferenceMeans exact{model, 3, {}};
    model.write_all(reducer, comm.rank(), 0);
    reducer.finish();
    expect_results(reducer, model, exact.run_step(0).means);
  });
}

TEST(Wire, ScaleFollowsGradientsThatShrinkAndGrow) {
  ToyModel model = plain_model();
  // Without a scale, 2^-30 would be zero in f16. Growth by 2^3 is within the scale's reserve.
  model.scale = [](int, int step) {
    constexpr int kExponents[] = {0, -10, -20, -30, -30, -27, -24, -22, -19};
    return std::ldexp(1.0, kExponents[step]);
  };
  expect_as_reference(model, 3, forced(WireType::F16), 9);
}

TEST(Wire, AJumpBeyondItsReserveIsSkippedUntilTheScaleFits) {
  ToyModel model = plain_model();
  model.scale = [](int, int step) { return step < 2 ? 1e-3 : 1.0; };
  GradientOptions options = forced(WireType::F16);
  options.loss_scale = {.enabled = true, .initial = 16, .growth_steps = 3};
  engine::run_ranks(2, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    ReferenceMeans reference{model, 2, options};
    int skipped = 0;
    for (int step = 0; step < 14; ++step) {
      model.write_all(reducer, comm.rank(), step);
      const FinishedStep finished = reducer.finish();
      const ReferenceMeans::StepResult expected = reference.run_step(step);
      ASSERT_EQ(finished.skipped, expected.skipped);
      ASSERT_EQ(finished.warning.empty(), !expected.skipped) << finished.warning;
      ASSERT_EQ(reducer.state().wire_scale, reference.wire_scale);
      ASSERT_EQ(reducer.loss_scale(), reference.loss_scale)
          << "overflows on the wire do not change it";
      skipped += finished.skipped ? 1 : 0;
    }
    EXPECT_GT(skipped, 3);
    EXPECT_LT(skipped, 8);
  });
}

TEST(Wire, AllRanksSkipAndNameANonFiniteGradientOfOneRank) {
  ToyModel model = plain_model();
  model.replacements = {
      {.rank = 2, .step = 1, .gradient = 0, .element = 7, .value = kNan},
      {.rank = 2, .step = 1, .gradient = 0, .element = 230, .value = -kInfinity},
      {.rank = 1, .step = 2, .gradient = 2, .element = 20'002, .value = kInfinity},
      {.rank = 3, .step = 2, .gradient = 1, .element = 0, .value = 1e9},
      {.rank = 3, .step = 2, .gradient = 1, .element = 1, .value = -1e9},
      {.rank = 0, .step = 4, .gradient = 5, .element = 0, .value = kNan}};
  const std::string at_rank_1 =
      "1 value of \"conv2.weight\" was not finite at rank 1 (f16 wire, scale 2^10)";
  const std::string at_rank_3 =
      "2 values of \"conv1.bias\" overflowed at rank 3 (f16 wire, scale 2^10)";
  const std::vector<std::string> warnings = {
      "", "2 values of \"conv1.weight\" were not finite at rank 2 (f16 wire, scale 2^10)",
      at_rank_1 + "; " + at_rank_3, "", "1 value of \"fc.bias\" was not finite at rank 0"};
  expect_as_reference(model, 4, forced(WireType::F16), 6, warnings);
  expect_as_reference(model, 4, forced(WireType::F16, 1), 6, warnings);
}

TEST(Wire, NamesTheFirstOfSeveralGradientsInThePool) {
  ToyModel model = plain_model();
  model.replacements = {{.rank = 1, .step = 1, .gradient = 0, .element = 7, .value = kNan},
                        {.rank = 1, .step = 1, .gradient = 4, .element = 8, .value = kNan}};
  const std::vector<std::size_t> order = model.random_order(0, 0);  // rank 0's in step 0
  const bool before =
      std::find(order.begin(), order.end(), 0U) < std::find(order.begin(), order.end(), 4U);
  const std::string first = model.gradients()[before ? 0 : 4].name;
  for (const std::size_t theta : {std::size_t{1}, std::size_t{1} << 40U}) {
    expect_as_reference(
        model, 2, forced(WireType::F16, theta), 3,
        {"", "1 value of \"" + first + "\" and 1 of other gradients were not finite at rank 1"});
  }
}

TEST(Wire, ASumThatOverflowsAloneIsSkippedAndNamed) {
  ToyModel model = plain_model();
  for (int rank = 0; rank < 3;
       ++rank)  // 40,000 fits in f16, but the sum of three such values does not
    model.replacements.push_back(
        {.rank = rank, .step = 0, .gradient = 4, .element = 999, .value = 40'000});
  expect_as_reference(model, 3, forced(WireType::F16), 3,
                      {"the sum of \"fc.weight\" over the ranks overflowed (f16 wire, scale 2^0)"});
}

TEST(Wire, Bf16WithoutLossScalingWarnsButDoesNotSkip) {
  ToyModel model = plain_model();
  model.replacements = {{.rank = 1, .step = 1, .gradient = 4, .element = 3, .value = kInfinity}};
  const std::vector<std::string> warnings = {
      "", "1 value of \"fc.weight\" was not finite at rank 1 (bf16 wire)"};
  expect_as_reference(model, 2, forced(WireType::BF16), 3, warnings);
}

TEST(LossScale, IsHalvedAfterAnOverflowAndDoubledAfterStepsWithout) {
  ToyModel model = plain_model();
  model.replacements = {{.rank = 1, .step = 2, .gradient = 4, .element = 3, .value = kInfinity},
                        {.rank = 0, .step = 3, .gradient = 0, .element = 0, .value = kNan},
                        {.rank = 0, .step = 12, .gradient = 2, .element = 1, .value = 1e35}};
  for (const WireType wire : {WireType::F32, WireType::F16, WireType::BF16}) {
    SCOPED_TRACE(static_cast<int>(wire));
    GradientOptions options = forced(wire);
    options.loss_scale = {.enabled = true, .initial = 65536, .growth_steps = 4};
    std::vector<std::string> warnings(16);
    warnings[2] = "1 value of \"fc.weight\" was not finite at rank 1";
    warnings[3] = "1 value of \"conv1.weight\" was not finite at rank 0";
    // This value overflows when it is multiplied by the loss scale.
    warnings[12] = "1 value of \"conv2.weight\" was not finite at rank 0";
    expect_as_reference(model, 3, options, 16, warnings);
  }
}

TEST(LossScale, DividesGradientsOfEveryTypeAgain) {
  GradientOptions options{.theta = 2000, .algorithm = "direct"};
  options.loss_scale = {.enabled = true, .initial = 1024, .growth_steps = 2};
  expect_as_reference(mixed_model(), 3, options, 5);
}

TEST(LossScale, NamesASumOfHalvesThatOverflows) {
  ToyModel model{{{"half", 10, DataType::F16}}};
  for (int rank = 0; rank < 3; ++rank)  // `ring` rounds the sum of two before it adds the third
    model.replacements.push_back(
        {.rank = rank, .step = 0, .gradient = 0, .element = 4, .value = 60'000});
  GradientOptions options{.algorithm = "ring"};
  options.loss_scale = {.enabled = true, .initial = 1, .growth_steps = 100};
  engine::run_ranks(3, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), options};
    model.write_all(reducer, comm.rank(), 0);
    const FinishedStep finished = reducer.finish();
    EXPECT_TRUE(finished.skipped);
    EXPECT_EQ(finished.warning, "the sum of \"half\" over the ranks overflowed");
    EXPECT_EQ(reducer.loss_scale(), 0.5);
  });
}

TEST(LossScale, F32IsNotCheckedWithoutLossScaling) {
  ToyModel model = plain_model();
  model.replacements = {{.rank = 1, .step = 0, .gradient = 4, .element = 3, .value = kNan}};
  engine::run_ranks(2, [&](Communicator& comm) {
    Reducer reducer{comm, model.gradients(), {}};
    model.write_all(reducer, comm.rank(), 0);
    const FinishedStep finished = reducer.finish();
    EXPECT_FALSE(finished.skipped);
    EXPECT_EQ(finished.warning, "");
    EXPECT_TRUE(std::isnan(reinterpret_cast<float*>(reducer.result(4))[3]));
  });
}

TEST(WireScale, BringsTheLargestSumBetweenTwoToTheElevenAndTwelve) {
  for (const float used : {1.0F, 0.25F, 1024.0F}) {
    for (const float largest : {1e-7F, 0.3F, 1.0F, 2047.0F, 2048.0F, 4095.0F, 4096.0F, 65504.0F}) {
      WireScale scale;
      scale.update(used, largest);
      const float next = largest / used * scale.value();
      EXPECT_GE(next, 2048) << largest;
      EXPECT_LT(next, 4096) << largest;
      EXPECT_EQ(std::exp2(std::ilogb(scale.value())), scale.value()) << "a power of two";
    }
  }
}

TEST(WireScale, DoesNotChangeForAZeroGradient) {
  WireScale scale;
  scale.update(1, 5);
  const float before = scale.value();
  scale.update(before, 0);
  EXPECT_EQ(scale.value(), before);
}

TEST(WireScale, IsLoweredOnlyByAStepThatUsedIt) {
  WireScale scale;
  scale.lower(1);
  EXPECT_EQ(scale.value(), 0.5F);
  scale.lower(1);
  EXPECT_EQ(scale.value(), 0.5F);
  scale.lower(0.5F);
  EXPECT_EQ(scale.value(), 0.25F);
}

TEST(WireScale, StaysFiniteAndNormal) {
  WireScale scale;
  for (int k = 0; k < 1000; ++k) scale.lower(scale.value());
  EXPECT_TRUE(std::isnormal(scale.value()));
  for (int k = 0; k < 100; ++k) scale.update(scale.value(), 0x1p-24F);
  EXPECT_TRUE(std::isnormal(scale.value()));
  EXPECT_TRUE(std::isnormal(1 / (scale.value() * 1e5F)));
}

TEST(LossScale, IsOneUnlessEnabled) {
  LossScale scale{{}};
  EXPECT_EQ(scale.value(), 1);
  scale.update(1, true);
  EXPECT_EQ(scale.value(), 1);
}

TEST(LossScale, IsUpdatedOnlyByStepsThatUsedIt) {
  LossScale scale{{.enabled = true, .initial = 64, .growth_steps = 2}};
  scale.update(64, true);
  EXPECT_EQ(scale.value(), 32);
  scale.update(64, true);  // in flight when the scale was lowered
  EXPECT_EQ(scale.value(), 32);
  scale.update(64, false);
  scale.update(32, false);
  EXPECT_EQ(scale.value(), 32);
  EXPECT_EQ(scale.clean_steps(), 1);
  scale.update(32, false);
  EXPECT_EQ(scale.value(), 64);
  EXPECT_EQ(scale.clean_steps(), 0);
}

const std::vector<GradientSpec> kGradients = {{"w", 10}, {"b", 5}, {"d", 5, DataType::F64}};
constexpr WireConversion kF16{.wire = WireType::F16, .ranks = 3, .wire_scale = 8};
constexpr WireConversion kScaled{.ranks = 3, .loss_scale = 4, .loss_scaled = true};

std::vector<OverflowCounts> at_rank(std::size_t rank, const OverflowCounts& counts) {
  std::vector<OverflowCounts> ranks(6);
  ranks[rank] = counts;
  return ranks;
}

TEST(DecideOverflow, DoesNothingWithoutOverflow) {
  const OverflowDecision decision =
      decide_overflow(std::vector<OverflowCounts>(3), {}, kF16, kGradients);
  EXPECT_FALSE(decision.finished.skipped || decision.lower_wire_scale || decision.lower_loss_scale);
  EXPECT_EQ(decision.finished.warning, "");
}

TEST(DecideOverflow, AnOverflowOnTheWireLowersOnlyTheWireScale) {
  WireConversion conversion = kF16;
  conversion.loss_scaled = true;
  const OverflowDecision decision =
      decide_overflow(at_rank(1, {.overflowed = 3, .first = 0, .in_first = 1}), {.on_wire = 0},
                      conversion, kGradients);
  EXPECT_TRUE(decision.finished.skipped);
  EXPECT_TRUE(decision.lower_wire_scale);
  EXPECT_FALSE(decision.lower_loss_scale);
  EXPECT_EQ(decision.finished.warning,
            "1 value of \"w\" and 2 of other gradients overflowed at rank 1 (f16 wire, scale 2^3)");
}

TEST(DecideOverflow, ANonFiniteGradientLowersOnlyTheLossScale) {
  WireConversion conversion = kF16;
  conversion.loss_scaled = true;
  const OverflowDecision decision =
      decide_overflow(at_rank(2, {.not_finite = 2, .first = 1, .in_first = 2}), {.on_wire = 1},
                      conversion, kGradients);
  EXPECT_TRUE(decision.finished.skipped);
  EXPECT_FALSE(decision.lower_wire_scale);
  EXPECT_TRUE(decision.lower_loss_scale);
  EXPECT_EQ(decision.finished.warning,
            "2 values of \"b\" were not finite at rank 2 (f16 wire, scale 2^3)");
}

TEST(DecideOverflow, AnOverflowOfOnlyTheSumLowersTheScaleItWasSentWith) {
  OverflowDecision decision =
      decide_overflow(std::vector<OverflowCounts>(3), {.on_wire = 1}, kF16, kGradients);
  EXPECT_TRUE(decision.finished.skipped && decision.lower_wire_scale);
  EXPECT_EQ(decision.finished.warning,
            "the sum of \"b\" over the ranks overflowed (f16 wire, scale 2^3)");
  decision = decide_overflow(std::vector<OverflowCounts>(3), {.in_pool = 2}, kScaled, kGradients);
  EXPECT_TRUE(decision.finished.skipped && decision.lower_loss_scale);
  EXPECT_FALSE(decision.lower_wire_scale);
  EXPECT_EQ(decision.finished.warning, "the sum of \"d\" over the ranks overflowed");
}

TEST(DecideOverflow, Bf16HasNoScaleOfItsOwn) {
  WireConversion conversion{.wire = WireType::BF16, .ranks = 3};
  const auto ranks = at_rank(0, {.overflowed = 1, .first = 0, .in_first = 1});
  EXPECT_FALSE(decide_overflow(ranks, {}, conversion, kGradients).finished.skipped);
  conversion.loss_scaled = true;
  const OverflowDecision decision = decide_overflow(ranks, {.on_wire = 0}, conversion, kGradients);
  EXPECT_TRUE(decision.finished.skipped && decision.lower_loss_scale);
  EXPECT_FALSE(decision.lower_wire_scale);
}

TEST(DecideOverflow, NamesFourRanksAndCountsTheOthers) {
  const std::vector<OverflowCounts> ranks(6, {.not_finite = 1, .first = 2, .in_first = 1});
  const std::string warning =
      decide_overflow(ranks, {.in_pool = 2}, kScaled, kGradients).finished.warning;
  EXPECT_NE(warning.find("1 value of \"d\" was not finite at rank 3; and at 2 more ranks"),
            std::string::npos)
      << warning;
}

}  // namespace
}  // namespace sluice::gradient
