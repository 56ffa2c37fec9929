#include "cli/bench/bench_allreduce.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>

#include "base/format.h"
#include "base/text.h"
#include "kernels/convert.h"

namespace sluice::cli {
namespace {

constexpr int kMostOperations = 60;
constexpr std::size_t kBlock = 1024;  // elements of a 16-bit type that are widened at once

struct Range {
  int exact_bits;  // integers up to 2^exact_bits are exact
  int least;       // values are integers times 2^least
  int most;        // values stay below 2^most
};

// Integer types divide their bits between distinct values and the growth of sums.
constexpr Range range_of(DataType type) {
  switch (type) {
    case DataType::F32:
      return {24, -100, 127};
    case DataType::F64:
      return {53, -100, 127};
    case DataType::F16:
      return {11, -14, 15};
    case DataType::BF16:
      return {8, -100, 127};
    case DataType::I32:
      return {16, 0, 31};
    case DataType::I64:
      return {32, 0, 63};
    default:  // elements of a byte: the bench has no option for them
      return {};
  }
}

constexpr bool is_integer(DataType type) { return type == DataType::I32 || type == DataType::I64; }

std::int64_t largest_prime_up_to(std::int64_t most) {
  for (std::int64_t candidate = most; candidate > 1; --candidate) {
    bool prime = true;
    for (std::int64_t d = 2; prime && d * d <= candidate; ++d) prime = candidate % d != 0;
    if (prime) return candidate;
  }
  return 1;
}

}  // namespace

BenchPattern::BenchPattern(DataType type, ReduceOp op, int ranks)
    : type_{type}, op_{op}, ranks_{ranks} {
  const Range range = range_of(type);
  const bool adds = ranks > 1 && (op == ReduceOp::Sum || op == ReduceOp::Mean);
  const bool power_of_two = (ranks & (ranks - 1)) == 0;
  const bool rounds = adds && !is_integer(type);
  constexpr std::int64_t kMostValue = 1 << 20;
  constexpr std::int64_t kFewest = 32;  // distinct values, enough to detect misplaced elements
  std::int64_t most_value = (std::int64_t{1} << range.exact_bits) / ranks;
  double most = kMostOperations;
  scale_ = std::ldexp(1, range.least);
  if (rounds && power_of_two) {
    // The next all-reduce adds n equal sums; all partial sums must be exact too.
    const std::int64_t repeatable = most_value / ranks;
    if (repeatable >= kFewest) {
      most_value = repeatable;
    } else {
      most = 1;
    }
  } else if (rounds) {
    tolerance_ = 2 * std::ldexp(1, -range.exact_bits);
    most = std::min(most, 1 / (16 * tolerance_));
  }
  modulus_ = largest_prime_up_to(std::min(kMostValue, most_value));
  if (adds && op == ReduceOp::Sum) {
    const double room = range.most - range.least - std::log2(static_cast<double>(modulus_) + 1);
    most = std::min(most, room / std::log2(ranks));
  }
  most_operations_ = std::max(1, static_cast<int>(most));
}

template <class T>
void BenchPattern::fill_values(T* values, std::size_t first, std::size_t count, Rank rank) const {
  const T scale = static_cast<T>(scale_);
  std::int64_t start = static_cast<std::int64_t>(first) % modulus_ * ranks_ % modulus_;
  std::int64_t turn = (static_cast<std::int64_t>(first) + rank) % ranks_;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t value = start + turn;
    if (value >= modulus_) value %= modulus_;
    values[i] = static_cast<T>(value + 1) * scale;
    if (++turn == ranks_) turn = 0;
    start += ranks_;
    if (start >= modulus_) start %= modulus_;
  }
}

// The result over the n values from `start` on, modulo the modulus, in units of the scale.
std::int64_t BenchPattern::whole_result(std::int64_t start) const {
  const std::int64_t n = ranks_;
  const bool wraps = start + n > modulus_;
  if (op_ == ReduceOp::Min) return wraps ? 1 : start + 1;
  if (op_ == ReduceOp::Max) return wraps ? modulus_ : start + n;
  const auto sum_below = [&](std::int64_t end) {
    const std::int64_t rounds = end / modulus_;
    const std::int64_t rest = end % modulus_;
    return rounds * (modulus_ * (modulus_ + 1) / 2) + rest * (rest + 1) / 2;
  };
  return wraps ? sum_below(start + n) - sum_below(start) : n * start + n * (n + 1) / 2;
}

template <class T>
std::optional<BenchPattern::Wrong> BenchPattern::check_values(const T* values, std::size_t first,
                                                              std::size_t count,
                                                              int operations) const {
  T factor = static_cast<T>(scale_);
  if (op_ == ReduceOp::Sum) {
    for (int k = 1; k < operations; ++k) factor *= static_cast<T>(ranks_);
  }
  const auto expected = [&](std::int64_t whole) {
    if (op_ != ReduceOp::Mean) return static_cast<T>(static_cast<T>(whole) * factor);
    return static_cast<T>(static_cast<T>(whole) / static_cast<T>(ranks_) * factor);
  };
  const T tolerance = static_cast<T>(tolerance_ * operations);
  const auto differs = [&](T found, T right) {
    if constexpr (std::is_floating_point_v<T>) {
      if (tolerance > 0) return !(std::abs(found - right) <= tolerance * right);
    }
    return found != right;
  };
  const std::int64_t n = ranks_;
  std::int64_t start = static_cast<std::int64_t>(first) % modulus_ * n % modulus_;
  for (std::size_t i = 0; i < count;) {
    // Until the values wrap, the results grow by a constant step, so the compiler can vectorise.
    const std::int64_t straight = std::max<std::int64_t>(1, (modulus_ - start) / n);
    const std::size_t run = std::min(count - i, static_cast<std::size_t>(straight));
    const auto begin = static_cast<std::int32_t>(whole_result(start));
    const auto step =
        static_cast<std::int32_t>(op_ == ReduceOp::Sum || op_ == ReduceOp::Mean ? n * n : n);
    const auto length = static_cast<std::int32_t>(run);
    bool wrong = false;
    if (tolerance == 0 && op_ == ReduceOp::Sum) {
      for (std::int32_t j = 0; j < length; ++j) {
        wrong |= values[i + j] != static_cast<T>(begin + j * step) * factor;
      }
    } else {
      for (std::int32_t j = 0; j < length; ++j) {
        wrong |= differs(values[i + j], expected(begin + j * step));
      }
    }
    for (std::int32_t j = 0; wrong && j < length; ++j) {
      const T right = expected(begin + j * step);
      if (differs(values[i + j], right)) {
        return Wrong{first + i + j, static_cast<double>(values[i + j]), static_cast<double>(right)};
      }
    }
    i += run;
    start = (start + static_cast<std::int64_t>(run) * n) % modulus_;
  }
  return std::nullopt;
}

void BenchPattern::fill(void* data, std::size_t count, Rank rank) const {
  switch (type_) {
    case DataType::F32:
      return fill_values(static_cast<float*>(data), 0, count, rank);
    case DataType::F64:
      return fill_values(static_cast<double*>(data), 0, count, rank);
    case DataType::I32:
      return fill_values(static_cast<std::int32_t*>(data), 0, count, rank);
    case DataType::I64:
      return fill_values(static_cast<std::int64_t*>(data), 0, count, rank);
    default:
      break;
  }
  std::array<float, kBlock> block{};
  for (std::size_t i = 0; i < count; i += kBlock) {
    const std::size_t part = std::min(kBlock, count - i);
    fill_values(block.data(), i, part, rank);
    kernels::narrow(type_, static_cast<std::uint16_t*>(data) + i, block.data(), part);
  }
}

std::optional<BenchPattern::Wrong> BenchPattern::check(const void* data, std::size_t count,
                                                       int operations) const {
  switch (type_) {
    case DataType::F32:
      return check_values(static_cast<const float*>(data), 0, count, operations);
    case DataType::F64:
      return check_values(static_cast<const double*>(data), 0, count, operations);
    case DataType::I32:
      return check_values(static_cast<const std::int32_t*>(data), 0, count, operations);
    case DataType::I64:
      return check_values(static_cast<const std::int64_t*>(data), 0, count, operations);
    default:
      break;
  }
  std::array<float, kBlock> block{};
  for (std::size_t i = 0; i < count; i += kBlock) {
    const std::size_t part = std::min(kBlock, count - i);
    kernels::widen(type_, block.data(), static_cast<const std::uint16_t*>(data) + i, part);
    if (auto wrong = check_values(block.data(), i, part, operations)) return wrong;
  }
  return std::nullopt;
}

namespace {

using Clock = std::chrono::steady_clock;

// Memory for the largest size of the sweep, from a pool or from operator new.
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
  constexpr std::int64_t kTotal = std::int64_t{256} << 20;  // bytes to reduce per size
  return static_cast<int>(std::clamp<std::int64_t>(kTotal / bytes, 20, 1000));
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
                      const std::function<void(const std::string&)>& report_error) {
  const BenchPattern pattern{bench.type, bench.op, comm.size()};
  const CollectiveOptions collective{.op = bench.op, .algorithm = bench.algorithm};
  const auto largest = *std::max_element(bench.sizes.begin(), bench.sizes.end());
  const Buffer buffer{comm, static_cast<std::size_t>(largest), bench.foreign};

  for (const std::int64_t bytes : bench.sizes) {
    const std::size_t count = static_cast<std::size_t>(bytes) / size_of(bench.type);
    const int iterations = bench.iterations > 0 ? bench.iterations : iterations_for(bytes);
    std::int64_t wrong = 0;
    std::vector<double> times_s;
    // The first batch warms up: its results are checked, its times do not count.
    for (bool warm = false; std::ssize(times_s) < iterations; warm = true) {
      const int left = iterations - static_cast<int>(times_s.size());
      const int operations = std::min(left, pattern.most_operations());
      pattern.fill(buffer.data(), count, comm.rank());
      comm.barrier();
      auto before = Clock::now();
      for (int i = 0; i < operations; ++i) {
        comm.all_reduce({buffer.data(), count, bench.type}, collective).wait();
        const auto after = Clock::now();
        if (warm) times_s.push_back(std::chrono::duration<double>(after - before).count());
        before = after;
      }
      const auto found = pattern.check(buffer.data(), count, operations);
      if (found && wrong == 0) {
        wrong = 1;
        report_error(base::format(
            "wrong result at {}: rank {} has {} instead of {} at element {} after {} {}",
            base::format_bytes(static_cast<double>(bytes)), comm.rank(), found->found,
            found->expected, found->element, operations,
            operations == 1 ? "all-reduce" : "all-reduces"));
      }
    }
    comm.all_reduce(times_s, {.op = ReduceOp::Mean}).wait();
    comm.all_reduce(std::span{&wrong, 1}, {.op = ReduceOp::Max}).wait();

    const double p50_s = percentile(times_s, 0.50);
    const double rate_gbps = static_cast<double>(bytes) / p50_s / 1e9;
    const double n = comm.size();
    report({.bytes = bytes,
            .algorithm = std::string{comm.algorithm_for(Collective::AllReduce,
                                                        count * size_of(bench.type), collective)},
            .p50_us = p50_s * 1e6,
            .p99_us = percentile(times_s, 0.99) * 1e6,
            .algbw_gbps = rate_gbps,
            .busbw_gbps = rate_gbps * 2 * (n - 1) / n,
            .verified = wrong == 0});
  }
}

}  // namespace sluice::cli
