#include "gradient/description.h"

#include <gtest/gtest.h>

#include "gradient/reducer.h"
#include "tests/engine/ranks.h"

namespace sluice::gradient {
namespace {

const std::vector<GradientSpec> kGradients = {
    {"conv.weight", 500}, {"conv.bias", 10}, {"fc.bias", 10}, {"fc.weight", 1000}};

// One of four ranks gets other arguments than the rest; every rank must report `expected`.
void expect_mismatch(const std::vector<GradientSpec>& other, const GradientOptions& other_options,
                     const std::string& expected, Rank other_rank = 2) {
  engine::run_ranks(4, [&](Communicator& comm) {
    const bool is_other = comm.rank() == other_rank;
    try {
      Reducer reducer{comm, is_other ? other : kGradients,
                      is_other ? other_options : GradientOptions{}};
      ADD_FAILURE() << "rank " << comm.rank() << " reported no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::Mismatch);
      EXPECT_NE(std::string{error.what()}.find(expected), std::string::npos) << error.what();
    }
    comm.barrier();  // the communicator still works
  });
}

TEST(Description, ADifferentCountIsNamedAtEveryRank) {
  auto other = kGradients;
  other[3].count = 999;
  const std::string expected =
      "gradient 3: rank 0 has \"fc.weight\" of 1000 f32, rank 2 has \"fc.weight\" of 999 f32";
  expect_mismatch(other, {}, expected);
}

TEST(Description, TheFirstOfSeveralDifferencesIsNamed) {
  auto other = kGradients;
  other[1].type = DataType::BF16;
  other[2].name = "else";
  expect_mismatch(other, {},
                  "gradient 1: rank 0 has \"conv.bias\" of 10 f32, rank 2 has \"conv.bias\" of 10 "
                  "bf16");
}

TEST(Description, AMissingOrAnAdditionalGradientIsNamed) {
  auto other = kGradients;
  other.pop_back();
  expect_mismatch(other, {}, "gradient 3: rank 0 has \"fc.weight\" of 1000 f32, rank 2 has none");
  other = kGradients;
  other.push_back({"more", 1});
  expect_mismatch(other, {}, "gradient 4: rank 0 has none, rank 2 has \"more\" of 1 f32");
}

TEST(Description, RankZeroMayBeTheOneThatDiffers) {
  auto other = kGradients;
  other[0].may_be_sparse = false;
  expect_mismatch(other, {},
                  "gradient 0: rank 0 has \"conv.weight\" of 500 f32 (never sparse), rank 1 has "
                  "\"conv.weight\" of 500 f32",
                  0);
}

TEST(Description, OptionsMustAgreeToo) {
  expect_mismatch(kGradients, {.theta = 77},
                  "theta: rank 0 has 4194304 bytes, rank 2 has 77 bytes");
  expect_mismatch(kGradients, {.groups = {1, 3}}, "groups: rank 0 has none, rank 2 has 1, 3");
  expect_mismatch(kGradients, {.wire = WireType::F16}, "wire type: rank 0 has f32, rank 2 has f16");
  expect_mismatch(kGradients, {.double_buffering = true}, "double buffering");
  expect_mismatch(kGradients, {.algorithm = "ring"},
                  "algorithm: rank 0 has chosen by size, rank 2 has ring");
}

TEST(Description, AllRanksRefuseUnusableOptionsAlike) {
  engine::run_ranks(3, [](Communicator& comm) {
    try {
      Reducer reducer{comm, kGradients, {.groups = {1, 2}}};
      ADD_FAILURE() << "three of four gradients were grouped";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::InvalidArgument) << error.what();
    }
  });
}

TEST(LayoutHash, ChangesWithEverythingThatMovesBytes) {
  const auto description = describe(kGradients, {});
  const std::uint64_t hash = layout_hash(description, {0, 1, 2, 3});
  EXPECT_EQ(hash, layout_hash(describe(kGradients, {}), {0, 1, 2, 3}));
  EXPECT_NE(hash, layout_hash(description, {0, 1, 3, 2}));
  auto other = kGradients;
  other[2].name = "fc.bais";
  EXPECT_NE(hash, layout_hash(describe(other, {}), {0, 1, 2, 3}));
  EXPECT_NE(hash, layout_hash(describe(kGradients, {.theta = 1}), {0, 1, 2, 3}));
}

}  // namespace
}  // namespace sluice::gradient
