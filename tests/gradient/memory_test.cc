// Measures the memory of a reducer: the process's resident pages before and after a few steps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/format.h"
#include "gradient/reducer.h"
#include "tests/engine/ranks.h"

namespace sluice::gradient {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kTensors = 4;
constexpr std::size_t kCount = std::size_t{3} << 20U;  // elements of a tensor
constexpr double kPoolBytes = static_cast<double>(kTensors * kCount * sizeof(float));

double resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Returns the memory that one rank uses, as a multiple of the pool's size.
double pools_for(const GradientOptions& options) {
  double taken = 0;
  engine::run_ranks(kRanks, [&](Communicator& comm) {
    std::vector<GradientSpec> specs;
    for (std::size_t i = 0; i < kTensors; ++i)
      specs.push_back({.name = base::format("tensor {}", i), .count = kCount});
    comm.barrier();
    const double before = resident_bytes();
    comm.barrier();
    Reducer reducer{comm, specs, options};
    for (int step = 0; step < 5; ++step) {
      for (std::size_t i = 0; i < kTensors; ++i) {
        auto* const slot = reinterpret_cast<float*>(reducer.slot(i));
        std::fill_n(slot, kCount, static_cast<float>(i + 1));
        reducer.mark_ready(i);
      }
      reducer.finish();
    }
    comm.barrier();
    if (comm.rank() == 0) taken = (resident_bytes() - before) / kRanks / kPoolBytes;
    comm.barrier();
  });
  return taken;
}

void expect_beyond_the_pool(double pools, const GradientOptions& options) {
  const double taken = pools_for(options);
  base::print("{:.3f} pools beyond the first, {} allowed\n", taken - 1, pools);
  constexpr double kOther = 0.02;  // stacks, tables, norms
  EXPECT_LE(taken - 1, pools + kOther);
  EXPECT_GE(taken - 1, pools - kOther) << "the measurement misses memory that is certainly used";
}

const SparseOptions kSparse{.sparsity = 0.85};

TEST(Memory, NothingBeyondThePoolInF32) { expect_beyond_the_pool(0, {}); }
TEST(Memory, HalfAPoolFor16Bits) {
  expect_beyond_the_pool(0.5, {.wire = WireType::F16, .force_wire = true});
  expect_beyond_the_pool(0.5, {.wire = WireType::BF16, .force_wire = true});
}
TEST(Memory, APoolForDoubleBuffering) {
  expect_beyond_the_pool(1, {.double_buffering = true});
  expect_beyond_the_pool(1.5,
                         {.wire = WireType::F16, .force_wire = true, .double_buffering = true});
}
TEST(Memory, APoolForSparseGradients) {
  expect_beyond_the_pool(1, {.sparse = kSparse});
  expect_beyond_the_pool(1.5, {.wire = WireType::F16, .force_wire = true, .sparse = kSparse});
}

}  // namespace
}  // namespace sluice::gradient
