#include "cli/train/train_program.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(RankThreads, LoaderThreadsCount) {
  for (const int threads : {2, 3, 4, 8, 9, 64}) {
    const RankThreads shared = share_threads(threads, true);
    EXPECT_EQ(shared.compute + shared.loader, threads);
    EXPECT_GE(shared.loader, 1);
    EXPECT_GE(shared.compute, shared.loader);
  }
  EXPECT_EQ(share_threads(1, true).compute, 1) << "both on one core";
  EXPECT_EQ(share_threads(1, true).loader, 1);
}

TEST(RankThreads, WhatIsInMemoryTakesNone) {
  for (const int threads : {1, 2, 16}) {
    EXPECT_EQ(share_threads(threads, false).compute, threads);
    EXPECT_EQ(share_threads(threads, false).loader, 0);
  }
}

TEST(RankThreads, AreThoseOfTheLauncher) {
  EXPECT_EQ(threads_of_rank(bootstrap::Environment{{{"OMP_NUM_THREADS", "6"}}}), 6);
  EXPECT_EQ(threads_of_rank(bootstrap::Environment{{}}), 1);
  EXPECT_EQ(threads_of_rank(bootstrap::Environment{{{"OMP_NUM_THREADS", "4,2"}}}), 1)
      << "a list of OpenMP's";
}

}  // namespace
}  // namespace sluice::cli
