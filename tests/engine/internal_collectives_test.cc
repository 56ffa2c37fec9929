#include "engine/internal_collectives.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/ranks.h"
#include "tests/engine/recorded_hooks.h"

namespace sluice::engine {
namespace {

bool becomes_true(const std::atomic<bool>& flag) {
  const auto until = std::chrono::steady_clock::now() + kTestDeadline;
  while (!flag.load() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return flag.load();
}

TEST(ProgressHooks, RunWhileTheCallerDoesNotWait) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    run_ranks(ranks, [&](Communicator& comm) {
      BackgroundSums sums{comm, 5, 1000};
      std::vector<Work> works;
      for (int e = 0; e < 5; ++e) works.push_back(sums.issue(comm, e));
      ASSERT_TRUE(becomes_true(sums.hooks.back()->unloaded));
      for (Work& work : works) work.wait();
      sums.expect_sums(comm.size());
    });
  }
}

TEST(ProgressHooks, RunForAnySizeAndAlgorithm) {
  for (const std::string algorithm : {"", "ring", "direct", "halving_doubling"}) {
    for (const std::size_t most : {0UL, 1UL, 37UL, 100'000UL}) {
      run_ranks(3, [&](Communicator& comm) {
        BackgroundSums sums{comm, 4, most};
        std::vector<Work> works;
        for (int e = 0; e < 4; ++e) works.push_back(sums.issue(comm, e, {.algorithm = algorithm}));
        for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
        sums.expect_sums(comm.size());
      });
    }
  }
}

TEST(ProgressHooks, RunInTheOrderOfIssueBetweenTheCallersOwnCollectives) {
  run_ranks(4, [](Communicator& comm) {
    Communicator other = comm.split(comm.rank() % 2);
    for (int round = 0; round < 50; ++round) {
      BackgroundSums sums{comm, 3, 5000};
      std::vector<std::int64_t> own(100, comm.rank());
      std::vector<std::int64_t> halves(1, comm.rank());
      Work first = sums.issue(comm, 0);
      Work between = comm.all_reduce(own);
      Work second = sums.issue(comm, 1);
      other.all_reduce(std::span{halves}.first(1)).wait();
      Work third = sums.issue(comm, 2);
      if (comm.rank() % 2 == 0) {
        third.wait();
        while (!between.done()) std::this_thread::yield();
      } else {
        between.wait();
        third.wait();
      }
      first.wait();
      second.wait();
      sums.expect_sums(4);
      EXPECT_EQ(own[99], 6);
      EXPECT_EQ(halves[0], comm.rank() % 2 == 0 ? 2 : 4);
    }
  });
}

TEST(ProgressHooks, RunWhileACommunicatorIsSplitAndDestroyed) {
  run_ranks(3, [](Communicator& comm) {
    for (int round = 0; round < 20; ++round) {
      BackgroundSums sums{comm, 2, 20'000};
      Work first = sums.issue(comm, 0);
      Communicator part = comm.split(0);
      Work second = sums.issue(comm, 1);
      part.barrier();
      second.wait();
      first.wait();
      sums.expect_sums(3);
    }
  });
}

TEST(ProgressHooks, AreNotUnloadedAfterAPeerIsLost) {
  run_ranks(3, [](Communicator& comm) {
    BackgroundSums sums{comm, 1, 100'000};
    comm.barrier();
    if (comm.rank() == 1) return;
    Work work = sums.issue(comm, 0);
    try {
      work.wait();
      FAIL() << "the collective completed without rank 1";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::PeerLost) << error.what();
      EXPECT_NE(std::string{error.what()}.find("rank 1"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(sums.hooks[0]->unloaded.load());
    EXPECT_THROW((void)sums.issue(comm, 0), Error);
  });
}

TEST(ProgressHooks, TheCallersDeadlineAppliesToBackgroundCollectives) {
  std::atomic<bool> over{false};
  run_ranks(2, [&](Communicator& comm) {
    BackgroundSums sums{comm, 1, 100'000};
    comm.barrier();
    if (comm.rank() == 0) {
      Work work = sums.issue(comm, 0);
      try {
        work.wait(std::chrono::milliseconds{200});
        ADD_FAILURE() << "the collective completed without rank 1";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::DeadlineExceeded) << error.what();
      }
      over.store(true);
    } else {
      ASSERT_TRUE(becomes_true(over));
    }
  });
}

TEST(ProgressHooks, ADifferentCallOfAPeerIsAMismatchAtBothRanks) {
  run_ranks(2, [](Communicator& comm) {
    BackgroundSums sums{comm, 1, 1000};
    Work work = comm.rank() == 0 ? sums.issue(comm, 0) : sums.issue(comm, 0, {.op = ReduceOp::Max});
    try {
      work.wait();
      FAIL() << "a sum and a maximum were taken for the same collective";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::Mismatch) << error.what();
    }
  });
}

TEST(ProgressHooks, AnUnknownAlgorithmFailsAtOnce) {
  run_ranks(2, [](Communicator& comm) {
    BackgroundSums sums{comm, 1, 10};
    EXPECT_THROW((void)sums.issue(comm, 0, {.algorithm = "rnig"}), Error);
    Work work = sums.issue(comm, 0);
    work.wait();
    sums.expect_sums(2);
  });
}

}  // namespace
}  // namespace sluice::engine
