// No thread waits while it holds a lock: `sluice launch -n N -- gradient_locks_test`. This is a
// separate program, because it replaces the C library's locks and waits.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "gradient/reducer.h"
#include "tests/engine/counters.h"
#include "tests/engine/ranks.h"

namespace sluice::gradient {
namespace {

TEST(GradientLocks, AWaitWithALockIsDetected) {
  const engine::WaitCounts before = engine::waits();
  std::mutex mutex;
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::microseconds{1}); };
  nap();
  {
    const std::lock_guard lock{mutex};
    nap();
  }
  nap();
  const engine::WaitCounts after = engine::waits();
  EXPECT_EQ(after.all - before.all, 3);
  EXPECT_EQ(after.with_lock - before.with_lock, 1);
}

TEST(GradientLocks, NoThreadWaitsWithALock) {
  const std::vector<GradientSpec> gradients = {{"a", 100'000}, {"b", 10}, {"c", 50'000}};
  const GradientOptions plain{.theta = 4000};
  GradientOptions double_buffered{
      .wire = WireType::F16, .force_wire = true, .double_buffering = true};
  GradientOptions sparse = plain;
  sparse.sparse = {.sparsity = 0.85, .chunk = 500};
  for (const GradientOptions& options : {plain, double_buffered, sparse}) {
    Reducer reducer{engine::world(), gradients, options};
    const auto step = [&] {
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        std::memset(reducer.slot(i), 0, gradients[i].count * size_of(gradients[i].type));
        reducer.mark_ready(i);
      }
      reducer.finish();
    };
    step();
    const engine::WaitCounts before = engine::waits();
    for (int k = 0; k < 20; ++k) {
      // One rank is late, so the others wait long enough to sleep.
      if (k % engine::world().size() == engine::world().rank())
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
      step();
    }
    const engine::WaitCounts after = engine::waits();
    EXPECT_GT(after.all - before.all, 20);
    EXPECT_EQ(after.with_lock - before.with_lock, 0);
  }
}

}  // namespace
}  // namespace sluice::gradient
