#include "gradient/sparse/sparsity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace sluice::gradient {
namespace {

using Flags = std::vector<std::uint8_t>;
using Parts = std::vector<GradientPart>;

const std::vector<GradientSpec> kGradients = {{.name = "a", .count = 30},
                                              {.name = "b", .count = 7, .may_be_sparse = false},
                                              {.name = "c", .count = 10}};

Sparsity four_chunks(double sparsity = 0.75) {
  return Sparsity{kGradients, {.sparsity = sparsity, .chunk = 10}};
}

Flags selected(const Sparsity& sparsity) {
  return {sparsity.selected().begin(), sparsity.selected().end()};
}

Parts received(const Sparsity& sparsity, std::size_t i) {
  return {sparsity.received(i).begin(), sparsity.received(i).end()};
}

TEST(Sparsity, SendsEverythingUntilNormsHaveArrived) {
  Sparsity sparsity = four_chunks();
  sparsity.plan();
  EXPECT_FALSE(sparsity.sparse());
  EXPECT_EQ(selected(sparsity), (Flags{1, 1, 1, 1}));
  sparsity.plan();  // while the first step is in flight
  EXPECT_FALSE(sparsity.sparse());
  sparsity.complete(false, std::vector<float>{0, 0, 0, 0});
  EXPECT_FALSE(sparsity.was_sparse());
  sparsity.plan();
  EXPECT_TRUE(sparsity.sparse());
  EXPECT_EQ(selected(sparsity), (Flags{1, 0, 0, 0}));
}

TEST(Sparsity, CountsChunksInFlightAsSent) {
  Sparsity sparsity = four_chunks();
  sparsity.plan();
  sparsity.complete(false, std::vector<float>{1, 4, 3, 2});
  sparsity.plan();
  EXPECT_EQ(selected(sparsity), (Flags{0, 1, 0, 0}));
  sparsity.plan();
  EXPECT_EQ(selected(sparsity), (Flags{0, 0, 1, 0}));
  // The new norms count, except for the chunk in flight, whose norm counts as 0.
  sparsity.complete(false, std::vector<float>{5, 0, 9, 6});
  sparsity.plan();
  EXPECT_EQ(selected(sparsity), (Flags{0, 0, 0, 1}));
}

TEST(Sparsity, ListsTheReceivedPartsAndTheirNumberOfSteps) {
  Sparsity sparsity = four_chunks();
  const auto step = [&](bool skipped, const std::vector<float>& norms) {
    sparsity.plan();
    sparsity.complete(skipped, norms);
  };
  step(false, {1, 2, 3, 4});  // all chunks arrive
  EXPECT_EQ(received(sparsity, 0), (Parts{{0, 10, 1}, {10, 10, 1}, {20, 10, 1}}));
  EXPECT_EQ(received(sparsity, 1), (Parts{{0, 7, 1}}));
  EXPECT_EQ(received(sparsity, 2), (Parts{{0, 10, 1}}));
  step(false, {1, 2, 3, 0});  // the last chunk arrives
  EXPECT_EQ(received(sparsity, 0), (Parts{}));
  EXPECT_EQ(received(sparsity, 1), (Parts{{0, 7, 1}}));
  EXPECT_EQ(received(sparsity, 2), (Parts{{0, 10, 1}}));
  step(true, {9, 9, 9, 9});   // skipped: the third chunk is not used
  step(false, {1, 2, 0, 1});  // the third chunk is sent again
  EXPECT_EQ(received(sparsity, 0), (Parts{{20, 10, 2}}));
  EXPECT_EQ(received(sparsity, 2), (Parts{}));
  step(false, {1, 0, 0, 1});
  EXPECT_EQ(received(sparsity, 0), (Parts{{10, 10, 3}}));
  EXPECT_EQ(sparsity.state().steps, 5);
  EXPECT_EQ(sparsity.state().norms, (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(sparsity.state().ages, (std::vector<std::uint32_t>{3, 0, 1, 2}));
}

TEST(Sparsity, WithoutSparsityEveryGradientIsWhole) {
  Sparsity sparsity{kGradients, {}};
  EXPECT_EQ(sparsity.chunks().size(), 0U);
  for (int step = 0; step < 3; ++step) {
    sparsity.plan();
    EXPECT_FALSE(sparsity.sparse());
    sparsity.complete(false, {});
    EXPECT_EQ(received(sparsity, 0), (Parts{{0, 30, 1}}));
  }
}

struct Selected {
  std::size_t elements;
  Flags selected;
};

Selected select(const SparseChunks& chunks, const std::vector<float>& norms, double sparsity) {
  std::vector<std::uint32_t> order(chunks.size());
  Flags selected(chunks.size(), 7);
  const std::size_t elements = select_chunks(chunks, norms, sparsity, order, selected);
  return {elements, selected};
}

// Sorts all chunks by norm and takes them one by one.
Selected naive(const SparseChunks& chunks, const std::vector<float>& norms, double sparsity) {
  std::vector<std::size_t> order(chunks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return norms[a] > norms[b]; });
  Selected result{0, Flags(chunks.size(), 0)};
  const auto all = static_cast<double>(chunks.elements());
  for (const std::size_t chunk : order) {
    if (all - static_cast<double>(result.elements) <= sparsity * all) break;
    result.selected[chunk] = 1;
    result.elements += chunks[chunk].count;
  }
  return result;
}

SparseChunks equal_chunks(std::size_t count) {
  return {std::vector<GradientSpec>{{.name = "g", .count = 10 * count}}, 10};
}

TEST(Selection, TakesTheLargestUntilItsShareIsReached) {
  const SparseChunks chunks = equal_chunks(5);
  const std::vector<float> norms = {3, 1, 5, 2, 4};
  EXPECT_EQ(select(chunks, norms, 0.6).selected, (Flags{0, 0, 1, 0, 1}));
  // Half a chunk more means a whole chunk more.
  EXPECT_EQ(select(chunks, norms, 0.59).selected, (Flags{1, 0, 1, 0, 1}));
  EXPECT_EQ(select(chunks, norms, 0.59).elements, 30U);
}

TEST(Selection, TakesAllChunksWithoutSparsity) {
  EXPECT_EQ(select(equal_chunks(4), {0, 0, 1, 0}, 0).selected, (Flags{1, 1, 1, 1}));
}

TEST(Selection, TakesOneChunkAtVeryHighSparsity) {
  EXPECT_EQ(select(equal_chunks(4), {1, 0, 2, 0}, 0.9999).selected, (Flags{0, 0, 1, 0}));
}

TEST(Selection, BreaksTiesByNumber) {
  EXPECT_EQ(select(equal_chunks(4), {1, 2, 1, 1}, 0.5).selected, (Flags{1, 1, 0, 0}));
  EXPECT_EQ(select(equal_chunks(4), {0, 0, 0, 0}, 0.5).selected, (Flags{1, 1, 0, 0}));
}

TEST(Selection, CountsNanAsInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(select(equal_chunks(4), {1, 2, nan, 3}, 0.75).selected, (Flags{0, 0, 1, 0}));
  EXPECT_EQ(select(equal_chunks(4), {1, inf, nan, 3}, 0.75).selected, (Flags{0, 1, 0, 0}));
}

TEST(Selection, IsEmptyWithoutChunks) {
  const SparseChunks chunks{
      std::vector<GradientSpec>{{.name = "b", .count = 9, .may_be_sparse = false}}, 4};
  EXPECT_EQ(select(chunks, {}, 0.85).elements, 0U);
}

TEST(Selection, AgreesWithANaiveSort) {
  std::mt19937 random{5};
  for (int round = 0; round < 200; ++round) {
    std::vector<GradientSpec> gradients;
    for (std::size_t i = 0; i < 1 + random() % 20; ++i) {
      gradients.push_back(
          {.name = "g", .count = 1 + random() % 500, .may_be_sparse = random() % 4 != 0});
    }
    const SparseChunks chunks{gradients, 1 + random() % 60};
    std::vector<float> norms(chunks.size());
    for (float& norm : norms) norm = static_cast<float>(random() % 40);  // with many ties
    const double sparsity = static_cast<double>(random() % 1000) / 1000;
    const Selected got = select(chunks, norms, sparsity);
    const Selected expected = naive(chunks, norms, sparsity);
    ASSERT_EQ(got.elements, expected.elements);
    ASSERT_EQ(got.selected, expected.selected);
  }
}

TEST(Selection, SendsAtMostSeventeenPercentOfALargeModel) {
  // Like the part of ResNet-50 with the worst ratio: ten million elements in matrices, and vectors.
  std::vector<GradientSpec> gradients;
  std::size_t vectors = 0;
  for (std::size_t all = 0; all < 10'000'000;) {
    const std::size_t count = 64 * 64 * 9 * (1 + gradients.size() % 17);
    gradients.push_back({.name = "weight", .count = count});
    gradients.push_back({.name = "bias", .count = 512, .may_be_sparse = false});
    all += count;
    vectors += 512;
  }
  const SparseOptions options{.sparsity = 0.85};
  const SparseChunks chunks{gradients, options.chunk};
  std::vector<float> norms(chunks.size());
  for (std::size_t c = 0; c < norms.size(); ++c) norms[c] = std::sin(static_cast<float>(c * c));
  const std::size_t sent = select(chunks, norms, sparsity_at(options, 0)).elements;
  EXPECT_GE(sent, static_cast<std::size_t>(0.15 * static_cast<double>(chunks.elements())));
  for (const double element_bytes : {2.0, 4.0}) {
    const double bytes = static_cast<double>(sent + vectors) * element_bytes +
                         static_cast<double>(chunks.size() * sizeof(float));
    const double dense = static_cast<double>(chunks.elements() + vectors) * element_bytes;
    EXPECT_LE(bytes / dense, 0.17);
  }
}

TEST(SparsityAt, IsDenseThenRisesThenStays) {
  const SparseOptions options{.sparsity = 0.8, .dense_steps = 2, .ramp_steps = 3};
  const std::vector<double> expected = {0, 0, 0.2, 0.4, 0.6, 0.8, 0.8};
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(sparsity_at(options, static_cast<std::int64_t>(step)), expected[step], 1e-15);
  }
  EXPECT_EQ(sparsity_at(options, 1'000'000), 0.8);
}

TEST(SparsityAt, IsConstantWithoutWarmUp) { EXPECT_EQ(sparsity_at({.sparsity = 0.85}, 0), 0.85); }

}  // namespace
}  // namespace sluice::gradient
