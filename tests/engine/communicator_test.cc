#include "sluice/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/engine/ranks.h"

namespace sluice::engine {
namespace {

TEST(Communicator, SeveralCollectivesMayBeInFlightAndRanksMayWaitInAnyOrder) {
  run_ranks(3, [](Communicator& comm) {
    constexpr std::size_t kCount = 20'000;
    std::vector<Pool> pools;
    std::vector<Work> works;
    for (int k = 0; k < 8; ++k) {
      pools.push_back(comm.allocate(kCount * sizeof(float)));
      for (float& x : pools.back().as<float>()) x = static_cast<float>(comm.rank() + k);
      works.push_back(comm.all_reduce(pools.back().as<float>()));
    }
    // Odd ranks wait from the last, even ranks from the first.
    for (int k = 0; k < 8; ++k)
      works[static_cast<std::size_t>(comm.rank() % 2 == 0 ? k : 7 - k)].wait();
    for (int k = 0; k < 8; ++k) {
      for (const float x : pools[static_cast<std::size_t>(k)].as<float>())
        ASSERT_EQ(x, static_cast<float>(3 + 3 * k));
    }
  });
}

TEST(Communicator, SplitsByColourAndOrdersByKey) {
  run_ranks(7, [](Communicator& comm) {
    Communicator part = comm.split(comm.rank() % 2, -comm.rank());
    const int expected_size = comm.rank() % 2 == 0 ? 4 : 3;
    ASSERT_EQ(part.size(), expected_size);
    EXPECT_EQ(part.rank(), expected_size - 1 - comm.rank() / 2) << "keys run backwards";
    std::vector<float> data(10'000, static_cast<float>(comm.rank()));
    part.all_reduce(data).wait();
    const float sum = comm.rank() % 2 == 0 ? 0 + 2 + 4 + 6 : 1 + 3 + 5;
    EXPECT_EQ(data[9999], sum);
    comm.barrier();
  });
}

TEST(Communicator, RanksMayWaitForTwoCommunicatorsInDifferentOrders) {
  run_ranks(2, [](Communicator& comm) {
    Communicator other = comm.split(0);
    std::vector<float> a(100'000, 1);
    std::vector<float> b(100'000, 2);
    for (int round = 0; round < 20; ++round) {
      std::fill(a.begin(), a.end(), 1.0F);
      std::fill(b.begin(), b.end(), 2.0F);
      Work first = comm.all_reduce(a);
      Work second = other.all_reduce(b);
      if (comm.rank() == 0) {
        first.wait();
        second.wait();
      } else {
        second.wait();
        first.wait();
      }
      ASSERT_EQ(a[5], 2);
      ASSERT_EQ(b[99'999], 4);
    }
  });
}

TEST(Communicator, AMismatchNamesBothRanks) {
  struct Case {
    const char* difference;
    std::function<void(Communicator&)> odd_call;
  };
  const std::vector<Case> cases = {{"size",
                                    [](Communicator& comm) {
                                      std::vector<float> data(50'000);
                                      comm.all_reduce(std::span{data}.first(40'000)).wait();
                                    }},
                                   {"small size",
                                    [](Communicator& comm) {
                                      std::vector<float> data(50'000);
                                      comm.all_reduce(std::span{data}.first(4)).wait();
                                    }},
                                   {"type",
                                    [](Communicator& comm) {
                                      std::vector<float> data(50'000);
                                      comm.all_reduce({data.data(), 50'000, DataType::I32}).wait();
                                    }},
                                   {"operation",
                                    [](Communicator& comm) {
                                      std::vector<float> data(50'000);
                                      comm.all_reduce(data, {.op = ReduceOp::Max}).wait();
                                    }},
                                   {"collective", [](Communicator& comm) {
                                      std::vector<float> data(50'000);
                                      comm.broadcast(data).wait();
                                    }}};
  for (const Case& each : cases) {
    run_ranks(3, [&](Communicator& comm) {
      comm.set_deadline(std::chrono::seconds{5});
      std::vector<float> data(50'000);
      try {
        if (comm.rank() == 1) {
          each.odd_call(comm);
        } else {
          comm.all_reduce(data).wait();
        }
        ADD_FAILURE() << each.difference << " was not noticed at rank " << comm.rank();
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Code::Mismatch || error.code() == Code::PeerLost)
            << error.what();
        // The odd rank names both sides.
        if (comm.rank() == 1) {
          EXPECT_NE(std::string{error.what()}.find("rank 1: it calls"), std::string::npos)
              << error.what();
        }
      }
    });
  }
}

// The root of a broadcast waits for no peer, so it is one collective ahead when the mismatch is
// found.
TEST(Communicator, OnAMismatchTheOthersNameTheRankThatRanAhead) {
  run_ranks(7, [](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds{5});
    std::vector<float> data(60);
    try {
      if (comm.rank() == 3) comm.broadcast(std::span{data}.first(4), {.root = 3}).wait();
      comm.all_reduce(data).wait();
      ADD_FAILURE() << "the mismatch was not noticed at rank " << comm.rank();
    } catch (const Error& error) {
      const std::string what = error.what();
      if (comm.rank() == 3) {
        EXPECT_NE(what.find("rank 3: it calls"), std::string::npos) << what;
      } else {
        EXPECT_TRUE(what.find("but rank 3 calls") != std::string::npos ||
                    what.find("because of rank 3") != std::string::npos)
            << what;
      }
    }
  });
}

TEST(Communicator, AnErrorNamesAMissingPeerAndLaterCallsFailAtOnce) {
  run_ranks(3, [](Communicator& comm) {
    std::vector<float> data(100'000, 1);
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds{700});
      return;
    }
    Work work = comm.all_reduce(data);
    std::string first;
    try {
      work.wait(std::chrono::milliseconds{200});
      ADD_FAILURE() << "the collective completed without rank 2";
    } catch (const Error& error) {
      first = error.what();
      EXPECT_NE(first.find("rank 2"), std::string::npos) << first;
    }
    const auto begin = std::chrono::steady_clock::now();
    try {
      comm.all_reduce(data).wait();
      ADD_FAILURE() << "a poisoned communicator ran a collective";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), first) << "later calls must throw the first cause";
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds{100});
  });
}

TEST(Communicator, ACollectiveThatMakesProgressMayTakeLongerThanTheDeadline) {
  run_ranks(2, [](Communicator& comm) {
    constexpr int kCalls = 40;
    constexpr std::chrono::milliseconds kStandstill{1000};
    std::vector<float> data(kCalls, 1.0F + static_cast<float>(comm.rank()));
    std::vector<Work> works;
    const auto begin = std::chrono::steady_clock::now();
    for (float& each : data) {
      if (comm.rank() == 1) std::this_thread::sleep_for(2 * kStandstill / kCalls);
      works.push_back(comm.all_reduce(std::span{&each, 1}));
    }
    works.back().wait(kStandstill);
    EXPECT_GT(std::chrono::steady_clock::now() - begin, kStandstill);
    EXPECT_EQ(data, std::vector<float>(kCalls, 3));
  });
}

// One rank leaves a split communicator. The rank itself and the first communicator go on.
TEST(Communicator, AnErrorNamesARankThatLeavesDuringACollectiveAtOnce) {
  run_ranks(3, [](Communicator& comm) {
    std::vector<float> data(3'000'000, 1);
    const auto begin = std::chrono::steady_clock::now();
    {
      Communicator part = comm.split(0);
      Work work = part.all_reduce(data);
      if (part.rank() != 1) {
        try {
          work.wait(kTestDeadline);
          ADD_FAILURE() << "the collective completed without rank 1";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Code::PeerLost);
          const std::string what = error.what();
          EXPECT_TRUE(what.find("rank 1 gave up") != std::string::npos ||
                      what.find("because of rank 1") != std::string::npos)
              << what;
        }
      }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kTestDeadline / 2);
    comm.barrier();
  });
}

TEST(Communicator, ThrowsOnWrongOptions) {
  run_ranks(2, [](Communicator& comm) {
    float x = 0;
    EXPECT_THROW((void)comm.all_reduce(std::span{&x, 1}, {.algorithm = "rign"}), Error);
    EXPECT_THROW((void)comm.broadcast(std::span{&x, 1}, {.root = 2}), Error);
    EXPECT_THROW((void)comm.broadcast(std::span{&x, 1}, {.algorithm = "ring"}), Error);
    comm.barrier();
  });
  EXPECT_THROW(Communicator::in_process(0), Error);
}

TEST(Communicator, BarriersAndSmallSumsInTurnDoNotOverwriteEachOthersSlots) {
  run_ranks(4, [](Communicator& comm) {
    for (int i = 0; i < 2000; ++i) {
      std::int32_t x = comm.rank() + i;
      comm.all_reduce(std::span{&x, 1}).wait();
      ASSERT_EQ(x, 6 + 4 * i);
      if (i % 3 == 0) comm.barrier();
    }
  });
}

}  // namespace
}  // namespace sluice::engine
