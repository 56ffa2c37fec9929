// A steady state allocates nothing, and a rank that waits uses no core. This is a separate program,
// because every allocation of the process is counted.
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "engine/internal_collectives.h"
#include "tests/engine/counters.h"
#include "tests/engine/ranks.h"

namespace sluice::engine {
namespace {

TEST(SteadyState, AllocatesNothing) {
  constexpr std::size_t kCounts[] = {1, 1000, 50'000};
  run_ranks(3, [&](Communicator& comm) {
    const Pool pool = comm.allocate(kCounts[2] * sizeof(float));
    std::vector<float> foreign(kCounts[2]);
    const CollectiveOptions ring{.algorithm = "ring"};
    const auto round = [&] {
      for (const std::size_t count : kCounts) {
        const auto pooled = pool.as<float>().first(count);
        const auto own = std::span{foreign}.first(count);
        comm.all_reduce(pooled).wait();
        comm.all_reduce(own).wait();
        comm.all_reduce(own, ring).wait();
        Work first = comm.all_reduce(pooled);
        Work second = comm.reduce_scatter(own);
        Work third = comm.broadcast(pooled);
        third.wait();
        second.wait();
        first.wait();
        Work gathered = comm.all_gather(own);
        while (!gathered.done()) std::this_thread::yield();
        comm.reduce(pooled, {.root = 2}).wait();
        comm.barrier();
      }
    };
    for (int i = 0; i < 5; ++i) round();
    comm.barrier();
    const long before = allocations();
    comm.barrier();
    for (int i = 0; i < 50; ++i) round();
    comm.barrier();
    const long during = allocations() - before;
    comm.barrier();
    EXPECT_EQ(during, 0);
  });
}

TEST(SteadyState, BackgroundCollectivesAllocateNothing) {
  run_ranks(2, [&](Communicator& comm) {
    const Pool pool = comm.allocate(50'000 * sizeof(float));
    ProgressHooks hooks;
    const auto round = [&] {
      Work first = all_reduce_in_background(comm, pool.as<float>().first(50'000), {}, &hooks);
      Work second = all_reduce_in_background(comm, pool.as<float>().first(1000), {}, nullptr);
      comm.all_reduce(pool.as<float>().first(10)).wait();
      second.wait();
      first.wait();
    };
    for (int i = 0; i < 20; ++i) round();
    comm.barrier();
    const long before = allocations();
    comm.barrier();
    for (int i = 0; i < 200; ++i) round();
    comm.barrier();
    const long during = allocations() - before;
    comm.barrier();
    EXPECT_EQ(during, 0);
  });
}

TEST(SteadyState, ARankThatWaitsUsesNoCore) {
  run_ranks(2, [](Communicator& comm) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1} << 20}) {
      std::vector<float> data(count);
      comm.barrier();
      if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds{1});
      timespec before{};
      timespec after{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      comm.all_reduce(std::span{data}.first(1)).wait();
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      const double seconds = static_cast<double>(after.tv_sec - before.tv_sec) +
                             static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
      EXPECT_LT(seconds, 0.02) << "of the second that rank 0 waits";
    }
  });
}

}  // namespace
}  // namespace sluice::engine
