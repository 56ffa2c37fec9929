#include "bench/network/two_groups.h"

#include <fmt/format.h>

#include <chrono>
#include <numeric>
#include <span>

#include "sluice/status.h"

namespace sluice::bench {
namespace {

float given(Rank rank, std::size_t i) {
  return static_cast<float>((i * 13 + static_cast<std::size_t>(rank) * 101) % 2003);
}

// Returns "" or what was wrong with the result.
std::string add(Communicator& comm, const box::Gate& gate, const std::string& algorithm,
                std::size_t count) {
  const Pool pool = comm.allocate(count * sizeof(float));
  const std::span<float> data = pool.as<float>();
  const auto prepare = [&] {
    for (std::size_t i = 0; i < count; ++i) data[i] = given(comm.rank(), i);
    comm.barrier();
  };
  const auto all_reduce = [&] {
    comm.all_reduce(data.data(), count, {.algorithm = algorithm}).wait();
  };
  prepare();
  all_reduce();  // uses up what the links' buckets hold
  prepare();
  gate.pass();
  all_reduce();
  gate.pass();
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;  // of whole numbers: exact
    for (Rank rank = 0; rank < comm.size(); ++rank) sum += given(rank, i);
    if (data[i] != sum) return fmt::format("element {} is wrong", i);
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

double TwoGroups::time(const std::string& algorithm, std::int64_t bytes) const {
  using Clock = std::chrono::steady_clock;
  const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
  Clock::time_point begin;
  double seconds = 0;
  const std::string wrong = box::run_job(
      cluster_, {.hosts = hosts_,
                 .environment = {{"SLUICE_TOPOLOGY", "generic"}},
                 .deadline = std::chrono::seconds{300},
                 .body = [&](Communicator& comm,
                             const box::Gate& gate) { return add(comm, gate, algorithm, count); },
                 .at_gate =
                     [&](int gate) {
                       if (gate == 0) begin = Clock::now();
                       if (gate == 1)
                         seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                     }});
  if (!wrong.empty()) throw Error{Status{Code::PeerLost, wrong}};
  return seconds;
}

}  // namespace sluice::bench
