// kernels_bench.cc - the memory throughput of the kernels, against minimal loops.
//
//   kernels_bench [--benchmark_filter=exchange]
//
// `exchange` is the core of a two-rank all-reduce over shared memory: each of two threads reduces
// its half from both buffers and stores it to both. In "warm" runs the cache holds the lines that a
// thread wrote in the slice before. In "fresh" runs each thread has just written a whole buffer, as
// a rank does with its gradients. GB/s are buffer bytes / time of the best slice: wall time, or
// from 16 MiB on the processor time of the busier thread. Every result is checked.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "bench/kernels/minimal.h"
#include "bench/kernels/two_threads.h"
#include "kernels/convert.h"
#include "kernels/norms.h"
#include "kernels/reduce.h"

namespace sluice::bench {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;

// Populated pages, like those of a pool.
float* buffer(int which) {
  static std::array<float*, 3> made{};
  if (made[which] == nullptr) {
    void* pages = mmap(nullptr, kMostBytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    made[which] = static_cast<float*>(pages);
  }
  return made[which];
}

void set_all(float* values, std::size_t count, float value) {
  std::fill(values, values + count, value);
}

bool all_are(const float* values, std::size_t count, float value) {
  return std::all_of(values, values + count, [=](float x) { return x == value; });
}

// Keeps the best slice of a benchmark.
class Best {
 public:
  void add(benchmark::State& state, double seconds) {
    state.SetIterationTime(seconds);
    best_s_ = std::min(best_s_, seconds);
  }
  void report(benchmark::State& state, double bytes) const {
    state.counters["GB/s"] = bytes / best_s_ / 1e9;
  }

 private:
  double best_s_ = std::numeric_limits<double>::infinity();
};

// From 16 MiB on every slice is disturbed by other processes.
TwoThreads::Clock clock_for(std::size_t bytes) {
  return bytes < std::size_t{16} << 20 ? TwoThreads::Clock::Wall : TwoThreads::Clock::Processor;
}

using Exchange = void (*)(float* a, float* b, std::size_t count);
using Add = void (*)(float* c, const float* a, const float* b, std::size_t count);

void our_exchange(float* a, float* b, std::size_t count) {
  void* const targets[] = {a, b};
  const void* const sources[] = {a, b};
  kernels::reduce_to_all({}, targets, sources, count);
}

void our_add(float* c, const float* a, const float* b, std::size_t count) {
  const void* const sources[] = {a, b};
  kernels::reduce_into({}, c, sources, count);
}

void exchange(benchmark::State& state, Exchange kernel, bool fresh) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t count = bytes / sizeof(float);
  const std::size_t half = count / 2;
  float* a = buffer(0);
  float* b = buffer(1);
  const auto work = [&](int rank) { kernel(a + rank * half, b + rank * half, half); };
  const auto fill = [&](int rank) { set_all(rank == 0 ? a : b, count, rank == 0 ? 1.0f : 2.0f); };
  TwoThreads threads;
  threads.run(fill);
  threads.run(work);
  if (!all_are(a, count, 3) || !all_are(b, count, 3)) return state.SkipWithError("wrong sums");
  set_all(a, count, 0);  // sums of zeros stay zero over all iterations
  set_all(b, count, 0);
  Best best;
  for (auto _ : state) {
    if (fresh) threads.run(fill);
    best.add(state, threads.run(work, clock_for(bytes)));
  }
  best.report(state, static_cast<double>(bytes));
}

void add(benchmark::State& state, Add kernel) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t count = bytes / sizeof(float);
  const std::size_t half = count / 2;
  float* a = buffer(0);
  float* b = buffer(1);
  float* c = buffer(2);
  set_all(a, count, 1);
  set_all(b, count, 2);
  const auto work = [&](int rank) {
    kernel(c + rank * half, a + rank * half, b + rank * half, half);
  };
  TwoThreads threads;
  Best best;
  for (auto _ : state) best.add(state, threads.run(work, clock_for(bytes)));
  if (!all_are(c, count, 3)) return state.SkipWithError("wrong sums");
  best.report(state, static_cast<double>(bytes));
}

// Runs `work` on one thread; `check` returns whether the result is right.
template <class Work, class Check>
void alone(benchmark::State& state, double bytes, Work work, Check check) {
  Best best;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    best.add(state, wall.count());
  }
  if (!check()) return state.SkipWithError("wrong result");
  best.report(state, bytes);
}

void reduce_many(benchmark::State& state, DataType type, int sources) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t count = bytes / size_of(type);
  std::vector<std::vector<std::uint8_t>> arrays(sources, std::vector<std::uint8_t>(bytes));
  std::vector<const void*> pointers;
  for (const auto& array : arrays) pointers.push_back(array.data());
  alone(
      state, static_cast<double>(bytes),
      [&] {
        kernels::reduce_into({.type = type}, arrays[0].data(), pointers, count);
        benchmark::ClobberMemory();
      },
      [&] { return arrays[0] == arrays[1]; });
}

void narrow_all(benchmark::State& state, DataType type) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  const std::vector<float> from(count, 1.5f);
  std::vector<std::uint16_t> to(count);
  kernels::ConvertCounts counts;
  alone(
      state, static_cast<double>(state.range(0)),
      [&] {
        counts += kernels::narrow(type, to.data(), from.data(), count);
        benchmark::ClobberMemory();
      },
      [&] {
        std::vector<float> back(count);
        kernels::widen(type, back.data(), to.data(), count);
        return back == from && counts == kernels::ConvertCounts{};
      });
}

void l1_all(benchmark::State& state, DataType type) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / size_of(type);
  const std::vector<std::uint8_t> from(static_cast<std::size_t>(state.range(0)));
  double norm = 1;
  alone(
      state, static_cast<double>(state.range(0)),
      [&] {
        kernels::l1_norms(type, from.data(), count, count, &norm);
        benchmark::ClobberMemory();
      },
      [&] { return norm == 0; });
}

void copy_all(benchmark::State& state, bool ours) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t half = bytes / 2;
  set_all(buffer(0), bytes / sizeof(float), 1);
  auto* to = reinterpret_cast<std::uint8_t*>(buffer(1));
  const auto* from = reinterpret_cast<const std::uint8_t*>(buffer(0));
  const auto work = [&](int rank) {
    if (ours) {
      kernels::copy(to + rank * half, from + rank * half, half);
    } else {
      std::copy_n(from + rank * half, half, to + rank * half);
    }
  };
  TwoThreads threads;
  Best best;
  for (auto _ : state) best.add(state, threads.run(work, clock_for(bytes)));
  if (!all_are(buffer(1), bytes / sizeof(float), 1)) return state.SkipWithError("wrong copy");
  best.report(state, static_cast<double>(bytes));
}

template <class... Arguments>
void register_kernel(const std::string& name, std::span<const std::int64_t> sizes,
                     Arguments... arguments) {
  auto* entry = benchmark::RegisterBenchmark(name.c_str(), arguments...);
  entry->UseManualTime()->MinTime(0.05);
  for (const std::int64_t size : sizes) entry->Arg(size);
}

void register_all() {
  static constexpr std::int64_t kSweep[] = {4 << 10, 64 << 10, 1 << 20,
                                            4 << 20, 64 << 20, 256 << 20};
  static constexpr std::int64_t kCached[] = {4 << 10, 64 << 10, 1 << 20};
  for (const bool fresh : {false, true}) {
    const std::string suffix = fresh ? "/fresh" : "/warm";
    register_kernel("exchange/minimal" + suffix, kSweep, exchange, minimal_exchange, fresh);
    register_kernel("exchange/sluice" + suffix, kSweep, exchange, our_exchange, fresh);
  }
  register_kernel("add/minimal", kSweep, add, minimal_add);
  register_kernel("add/sluice", kSweep, add, our_add);
  register_kernel("copy/memcpy", kSweep, copy_all, false);
  register_kernel("copy/sluice", kSweep, copy_all, true);
  for (const DataType type : {DataType::F32, DataType::F64, DataType::F16, DataType::BF16}) {
    const std::string suffix{name(type)};
    for (const int sources : {2, 3, 8}) {
      register_kernel("reduce/" + suffix + "/" + std::to_string(sources), kCached, reduce_many,
                      type, sources);
    }
    register_kernel("l1/" + suffix, kCached, l1_all, type);
  }
  for (const DataType type : {DataType::F16, DataType::BF16}) {
    register_kernel("narrow/" + std::string{name(type)}, kCached, narrow_all, type);
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
