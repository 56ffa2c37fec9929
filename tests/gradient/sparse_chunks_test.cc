#include "gradient/sparse/sparse_chunks.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::gradient {
namespace {

const std::vector<GradientSpec> kGradients = {
    {.name = "weight", .count = 10},
    {.name = "bias", .count = 100, .may_be_sparse = false},
    {.name = "exact", .count = 8},
    {.name = "empty", .count = 0},
    {.name = "double", .count = 9, .type = DataType::F64},
    {.name = "small", .count = 3},
};

TEST(SparseChunks, CutEveryGradientByItself) {
  const SparseChunks chunks{kGradients, 4};
  const std::vector<SparseChunk> expected = {
      {.gradient = 0, .first = 0, .count = 4, .offset = 0},
      {.gradient = 0, .first = 4, .count = 4, .offset = 4},
      {.gradient = 0, .first = 8, .count = 2, .offset = 8},
      {.gradient = 2, .first = 0, .count = 4, .offset = 10},
      {.gradient = 2, .first = 4, .count = 4, .offset = 14},
      {.gradient = 5, .first = 0, .count = 3, .offset = 18},
  };
  ASSERT_EQ(chunks.size(), expected.size());
  for (std::size_t c = 0; c < chunks.size(); ++c) EXPECT_EQ(chunks[c], expected[c]) << c;
  EXPECT_EQ(chunks.elements(), 21U);
}

TEST(SparseChunks, LeaveVectorsAndOtherTypesWhole) {
  const SparseChunks chunks{kGradients, 4};
  for (const std::size_t i : {1, 3, 4}) EXPECT_TRUE(chunks.whole(i)) << i;
  for (const std::size_t i : {0, 2, 5}) EXPECT_FALSE(chunks.whole(i)) << i;
}

TEST(SparseChunks, AreFoundByGradientAndElement) {
  for (const std::size_t size : {1, 3, 4, 1000}) {
    const SparseChunks chunks{kGradients, size};
    for (std::size_t i = 0; i < kGradients.size(); ++i) {
      EXPECT_EQ(chunks.of(i).size(), chunks.end(i) - chunks.begin(i));
      if (chunks.whole(i)) continue;
      for (std::size_t element = 0; element < kGradients[i].count; ++element) {
        const SparseChunk& chunk = chunks[chunks.at(i, element)];
        EXPECT_EQ(chunk.gradient, i);
        EXPECT_GE(element, chunk.first);
        EXPECT_LT(element, chunk.first + chunk.count);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::gradient
