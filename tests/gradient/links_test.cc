// Measures the bytes between hosts in a reducer's steps, by the counters of network interfaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "gradient/reducer.h"
#include "tests/box/box_ranks.h"

namespace sluice::gradient {
namespace {

// A model of 11.2 million parameters: matrices of different sizes, each followed by a bias.
std::vector<GradientSpec> gradients() {
  std::vector<GradientSpec> all;
  for (const std::size_t rows : {64, 300, 1000, 2000, 4096}) {
    all.push_back({.name = base::format("{}.weight", rows), .count = rows * 1500});
    all.push_back({.name = base::format("{}.bias", rows), .count = rows, .may_be_sparse = false});
  }
  return all;
}

double bytes_of(const std::vector<GradientSpec>& all) {
  double bytes = 0;
  for (const GradientSpec& each : all) bytes += sizeof(float) * static_cast<double>(each.count);
  return bytes;
}

constexpr int kBefore = 3;  // steps before counting: norms arrive and connections open
constexpr int kCounted = 4;

// Some (gradient, chunk, step) have large values, so the selection changes from step to step.
float value(std::size_t gradient, std::size_t element, int step, Rank rank) {
  const std::size_t chunk = element / (std::size_t{32} * 1024);
  const float size = (chunk * 7 + gradient * 3 + static_cast<std::size_t>(step)) % 11 == 0 ? 64 : 1;
  return size * static_cast<float>(1 + (element * 13 + static_cast<std::size_t>(rank)) % 5);
}

std::string run_steps(Communicator& comm, const box::Gate& gate, const GradientOptions& options) {
  const std::vector<GradientSpec> specs = gradients();
  Reducer reducer{comm, specs, options};
  std::vector<double> sums(specs.size());  // sums of the received means, by gradient
  std::vector<double> expected(specs.size());
  for (int step = 0; step < kBefore + kCounted; ++step) {
    if (step == kBefore) {
      comm.barrier();
      gate.pass();
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
      auto* const slot = reinterpret_cast<float*>(reducer.slot(i));
      for (std::size_t e = 0; e < specs[i].count; ++e) {
        slot[e] = value(i, e, step, comm.rank());
        for (Rank rank = 0; rank < comm.size(); ++rank)
          expected[i] += value(i, e, step, rank) / static_cast<double>(comm.size());
      }
      reducer.mark_ready(i);
    }
    reducer.finish();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto* const result = reinterpret_cast<const float*>(reducer.result(i));
      for (const GradientPart& part : reducer.received(i)) {
        for (std::size_t e = 0; e < part.count; ++e) sums[i] += result[part.first + e];
      }
    }
  }
  gate.pass();
  // All values are whole numbers below 2^24, so sums are exact: received gradients plus all
  // residuals equal the total.
  std::vector<double> residual(1);
  for (const float each : reducer.residual()) residual[0] += each;
  comm.all_reduce(std::span{residual}.first(1)).wait();
  double missing = -residual[0] / comm.size();
  for (std::size_t i = 0; i < specs.size(); ++i) missing += expected[i] - sums[i];
  return missing == 0 ? "" : base::format("{} is lost", missing);
}

// Returns the bytes that the busier host sends in a step.
double sent_bytes(const box::ClusterBox& cluster, const GradientOptions& options) {
  std::vector<box::LinkCounters> before;
  double most = 0;
  box::BoxJob job{.hosts = {0, 1}, .environment = {{"SLUICE_TOPOLOGY", "generic"}}};
  job.deadline *= SLUICE_SLOWDOWN;
  job.body = [&](Communicator& comm, const box::Gate& gate) {
    return run_steps(comm, gate, options);
  };
  job.at_gate = [&](int gate) {
    for (int host = 0; host < cluster.hosts(); ++host) {
      const box::LinkCounters now = cluster.counters(host);
      if (gate == 0) before.push_back(now);
      if (gate == 1)
        most = std::max(most,
                        now.payload_sent_since(before[static_cast<std::size_t>(host)]) / kCounted);
    }
  };
  EXPECT_EQ(box::run_job(cluster, job), "");
  return most;
}

TEST(Links, SparseStepsSendASixthOfDenseOnes) {
  auto cluster = box::ClusterBox::make({.hosts = 2, .mbit_per_s = 10'000});
  if (!cluster.ok()) GTEST_SKIP() << cluster.status().message();
  const double dense = sent_bytes(cluster.value(), {});
  // Each of the two hosts sends the bytes of one buffer: half to reduce, half to distribute.
  EXPECT_NEAR(dense / bytes_of(gradients()), 1, 0.01);
  const double sparse = sent_bytes(cluster.value(), {.sparse = {.sparsity = 0.85}});
  RecordProperty("sparse_of_dense", base::format("{:.4f}", sparse / dense));
  base::print("sparse steps send {:.4f} of what dense ones do\n", sparse / dense);
  EXPECT_LE(sparse / dense, 0.17);
  EXPECT_GE(sparse / dense, 0.15);
}

}  // namespace
}  // namespace sluice::gradient
