#include "cli/bench/bench_allreduce.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <optional>

#include "base/format.h"
#include "base/text.h"
#include "cli/bench/bench_pattern.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

// A pool's memory or the program's own, large enough for every size of the sweep.
class Buffer {
 public:
  Buffer(Communicator& comm, std::size_t bytes, bool foreign) {
    if (foreign) {
      own_.reset(static_cast<std::byte*>(::operator new(bytes, kPage)));
    } else {
      pool_ = comm.allocate(bytes);
    }
  }
  std::byte* data() const { return pool_ ? pool_->data() : own_.get(); }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, kPage); }
  };
  std::optional<Pool> pool_;
  std::unique_ptr<std::byte, Free> own_;
};

int iterations_for(std::int64_t bytes) {
  constexpr std::int64_t kWorth = std::int64_t{256} << 20;  // bytes to reduce at every size
  return static_cast<int>(std::clamp<std::int64_t>(kWorth / bytes, 20, 1000));
}

double percentile(std::vector<double> values, double fraction) {
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = values.begin() + std::lround(fraction * last);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

void bench_all_reduce(Communicator& comm, const AllReduceBench& bench,
                      const std::function<void(const AllReduceRow&)>& report,
                      const std::function<void(const std::string&)>& complain) {
  const BenchPattern pattern{bench.type, bench.op, comm.size()};
  const CollectiveOptions collective{
      .type = bench.type, .op = bench.op, .algorithm = bench.algorithm};
  const auto largest = *std::max_element(bench.sizes.begin(), bench.sizes.end());
  const Buffer buffer{comm, static_cast<std::size_t>(largest), bench.foreign};

  for (const std::int64_t bytes : bench.sizes) {
    const std::size_t count = static_cast<std::size_t>(bytes) / size_of(bench.type);
    const int iterations = bench.iterations > 0 ? bench.iterations : iterations_for(bytes);
    std::int64_t wrong = 0;
    std::vector<double> times_s;
    // The first batch warms up and is checked as well, but not counted.
    for (bool warm = false; std::ssize(times_s) < iterations; warm = true) {
      const int left = iterations - static_cast<int>(times_s.size());
      const int operations = std::min(left, pattern.most_operations());
      pattern.fill(buffer.data(), count, comm.rank());
      comm.barrier();
      auto before = Clock::now();
      for (int i = 0; i < operations; ++i) {
        comm.all_reduce(buffer.data(), count, collective).wait();
        const auto after = Clock::now();
        if (warm) times_s.push_back(std::chrono::duration<double>(after - before).count());
        before = after;
      }
      const auto found = pattern.check(buffer.data(), count, operations);
      if (found && wrong == 0) {
        wrong = 1;
        complain(base::format("at {} rank {} holds {} instead of {} at element {} after {} {}",
                              base::format_bytes(static_cast<double>(bytes)), comm.rank(),
                              found->found, found->expected, found->element, operations,
                              operations == 1 ? "all-reduce" : "all-reduces"));
      }
    }
    comm.all_reduce(times_s.data(), times_s.size(), {.type = DataType::F64, .op = ReduceOp::Mean})
        .wait();
    comm.all_reduce(&wrong, 1, {.type = DataType::I64, .op = ReduceOp::Max}).wait();

    const double p50_s = percentile(times_s, 0.50);
    const double rate_gbps = static_cast<double>(bytes) / p50_s / 1e9;
    const double n = comm.size();
    report({.bytes = bytes,
            .algorithm = std::string{comm.algorithm_for(Collective::AllReduce, count, collective)},
            .p50_us = p50_s * 1e6,
            .p99_us = percentile(times_s, 0.99) * 1e6,
            .algbw_gbps = rate_gbps,
            .busbw_gbps = rate_gbps * 2 * (n - 1) / n,
            .verified = wrong == 0});
  }
}

}  // namespace sluice::cli
