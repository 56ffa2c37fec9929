// In the steady state a step allocates nothing. This is a separate program, because it counts every
// allocation of the process.
#include <gtest/gtest.h>

#include <cstring>

#include "gradient/reducer.h"
#include "tests/engine/counters.h"
#include "tests/engine/ranks.h"

namespace sluice::gradient {
namespace {

TEST(GradientSteadyState, AllocatesNothing) {
  const std::vector<GradientSpec> gradients = {
      {"a", 1000}, {"b", 10}, {"c", 50'000}, {"d", 300, DataType::F64}, {"e", 70, DataType::F16}};
  GradientOptions plain{.theta = 4000};
  GradientOptions narrow{.theta = 4000, .wire = WireType::F16, .force_wire = true};
  GradientOptions late = narrow;
  late.double_buffering = true;
  late.loss_scale = {.enabled = true, .initial = 16, .growth_steps = 7};
  GradientOptions sparse = plain;
  sparse.sparse = {.sparsity = 0.85, .chunk = 500};
  GradientOptions sparse_late = late;
  sparse_late.sparse = sparse.sparse;
  for (const GradientOptions& options : {plain, narrow, late, sparse, sparse_late}) {
    engine::run_ranks(3, [&](Communicator& comm) {
      Timeline timeline{10};  // too small for all events
      Reducer reducer{comm, gradients, options};
      reducer.set_timeline(&timeline);
      const auto step = [&] {
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          if (i == 1 && comm.rank() == 0) continue;
          std::memset(reducer.slot(i), 0, gradients[i].count * size_of(gradients[i].type));
          reducer.mark_ready(i);
        }
        return reducer.finish();
      };
      for (int k = 0; k < 10; ++k) step();
      comm.barrier();
      const long before = engine::allocations();
      comm.barrier();
      for (int k = 0; k < 50; ++k) step();
      comm.barrier();
      const long during = engine::allocations() - before;
      comm.barrier();
      EXPECT_EQ(during, 0);
    });
  }
}

}  // namespace
}  // namespace sluice::gradient
