#include "bench/network/two_groups.h"

#include <chrono>
#include <numeric>
#include <span>

#include "base/format.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

float input(Rank rank, std::size_t i) {
  return static_cast<float>((i * 13 + static_cast<std::size_t>(rank) * 101) % 2003);
}

// Returns "" or an error.
std::string measure(Communicator& comm, const box::Gate& gate, const std::string& algorithm,
                    std::size_t count, int repeats) {
  const Pool pool = comm.allocate(count * sizeof(float));
  const std::span<float> data = pool.as<float>();
  const auto prepare = [&] {
    for (std::size_t i = 0; i < count; ++i) data[i] = input(comm.rank(), i);
    comm.barrier();
  };
  const auto all_reduce = [&] { comm.all_reduce(data, {.algorithm = algorithm}).wait(); };
  // The warm-up empties the token buckets of the links and lets TCP adapt its windows.
  constexpr std::size_t kWarmUpBytes = std::size_t{24} << 20;
  for (std::size_t bytes = 0; bytes < kWarmUpBytes; bytes += count * sizeof(float)) {
    prepare();
    all_reduce();
  }
  for (int repeat = 0; repeat < repeats; ++repeat) {
    prepare();
    gate.pass();
    all_reduce();
    gate.pass();
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;  // exact: all inputs are small integers
      for (Rank rank = 0; rank < comm.size(); ++rank) sum += input(rank, i);
      if (data[i] != sum) return base::format("element {} is wrong", i);
    }
  }
  return "";
}

}  // namespace

TwoGroups::TwoGroups(const TwoGroupsOptions& options)
    : cluster_{box::ClusterBox::make({.hosts = 2 * options.hosts,
                                      .mbit_per_s = options.mbit_per_s,
                                      .groups = {options.hosts, options.hosts},
                                      .uplink_mbit_per_s = options.uplink_mbit_per_s})
                   .value()},
      hosts_(static_cast<std::size_t>(2 * options.hosts)) {
  std::iota(hosts_.begin(), hosts_.end(), 0);
}

std::vector<double> TwoGroups::times(const std::string& algorithm, std::int64_t bytes,
                                     int repeats) const {
  using Clock = std::chrono::steady_clock;
  const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
  Clock::time_point begin;
  std::vector<double> seconds;
  const std::string wrong = box::run_job(
      cluster_, {.hosts = hosts_,
                 .deadline = std::chrono::seconds{300},
                 .body =
                     [&](Communicator& comm, const box::Gate& gate) {
                       return measure(comm, gate, algorithm, count, repeats);
                     },
                 .at_gate =
                     [&](int gate) {
                       const Clock::time_point now = Clock::now();
                       if (gate % 2 == 1)
                         seconds.push_back(std::chrono::duration<double>(now - begin).count());
                       begin = now;
                     }});
  if (!wrong.empty()) throw Error{Status{Code::PeerLost, wrong}};
  return seconds;
}

}  // namespace sluice::bench
