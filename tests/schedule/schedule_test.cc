#include "sluice/schedule.h"

#include <gtest/gtest.h>

namespace sluice::schedule {
namespace {

// Chunks must lie end to end over the whole buffer, whatever its length.
void expect_covers(const Chunking& chunking, std::int64_t count) {
  EXPECT_EQ(chunking.begin(0, count), 0);
  EXPECT_EQ(chunking.begin(chunking.chunks(), count), count);
  for (int chunk = 0; chunk < chunking.chunks(); ++chunk) {
    EXPECT_LE(chunking.begin(chunk, count), chunking.begin(chunk + 1, count)) << chunk;
  }
}

TEST(Chunking, CoversEveryElementOfAnyCount) {
  for (const int chunks : {1, 3, 7, 13, 64}) {
    for (const std::int64_t count : {0, 1, 2, 7, 63, 64, 65, 1'000'003}) {
      expect_covers(Chunking{chunks}, count);
    }
  }
  expect_covers(Chunking{std::vector<std::int64_t>{3, 1, 2, 9}}, 100);
  expect_covers(Chunking{std::vector<std::int64_t>{3, 1, 2, 9}}, 2);
}

TEST(Chunking, EqualChunksDifferByOneElementAtMost) {
  const Chunking chunking{7};
  for (int chunk = 0; chunk < 7; ++chunk) {
    const auto size = chunking.begin(chunk + 1, 100) - chunking.begin(chunk, 100);
    EXPECT_TRUE(size == 14 || size == 15) << size;
  }
}

TEST(Chunking, WeightsAreShares) {
  const Chunking chunking{std::vector<std::int64_t>{1, 2, 3}};
  EXPECT_EQ(chunking.total_weight(), 6);
  EXPECT_EQ(chunking.weight(1), 2);
  EXPECT_EQ(chunking.begin(1, 600), 100);
  EXPECT_EQ(chunking.begin(2, 600), 300);
  EXPECT_EQ(chunking.weight(Range{.first = 2, .count = 2}), 3 + 1) << "a range may wrap";
  EXPECT_EQ(chunking.weight(Range{.first = 0, .count = 3}), 6);
}

TEST(Chunking, DoesNotOverflowOnHugeBuffers) {
  const std::int64_t huge = std::int64_t{1} << 50;
  const Chunking chunking{
      std::vector<std::int64_t>{std::int64_t{1} << 39, 1, std::int64_t{1} << 39}};
  expect_covers(chunking, huge);
}

TEST(Chunking, WithEqualWeightsIsUniform) {
  EXPECT_EQ(Chunking{std::vector<std::int64_t>(5, 12)}, Chunking{5});
}

TEST(OwnerOfChunk, AssignsChunksToRanksInOrder) {
  EXPECT_EQ(owner_of_chunk(Chunking{6}, 3, 0), 0);
  EXPECT_EQ(owner_of_chunk(Chunking{6}, 3, 1), 0);
  EXPECT_EQ(owner_of_chunk(Chunking{6}, 3, 5), 2);
}

}  // namespace
}  // namespace sluice::schedule
