// What `explain` shows and the engine chooses is what the simulator finds fastest, within 10%: on
// every shipped cluster, for the ranks of a large job there and of a small one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"
#include "simulate/collective.h"

namespace sluice::simulate {
namespace {

constexpr double kWithin = 1.10;
constexpr std::int64_t kSizes[] = {1 << 10,  16 << 10,  256 << 10, 1 << 20,
                                   16 << 20, 256 << 20, 1 << 30};

struct Job {
  std::string_view cluster;
  std::array<int, 2> ranks;
};

constexpr Job kJobs[] = {
    {"abci", {16, 128}},        {"ascend-910", {16, 128}},        {"aws-p3-16xlarge", {16, 32}},
    {"generic", {13, 64}},      {"facebook-bigbasin", {32, 256}}, {"h200-hgx", {16, 64}},
    {"mn-1", {32, 256}},        {"mn-1-10gbe", {16, 32}},         {"sensetime-p", {24, 64}},
    {"sensetime-v", {64, 256}}, {"shared-memory", {2, 8}},        {"tencent-p40", {16, 128}},
    {"this-machine", {2, 8}},   {"tpu-v2-pod", {16, 256}},        {"tpu-v3-pod", {64, 256}},
};

std::string table_of(const std::vector<AllReduceTime>& times) {
  std::string table;
  for (const AllReduceTime& time : times) {
    table += base::format("{:<34} {:>5} segments, simulated {:>10}, predicted {:>10}\n",
                          time.candidate.algorithm->name, time.candidate.shape.segments,
                          base::format_seconds(time.seconds),
                          base::format_seconds(time.candidate.seconds));
  }
  return table;
}

class Agreement : public testing::TestWithParam<Job> {};
INSTANTIATE_TEST_SUITE_P(EveryCluster, Agreement, testing::ValuesIn(kJobs), [](const auto& job) {
  std::string name{job.param.cluster};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(Agreement, TheChoiceIsWithinTenPercentOfTheSimulatorsBest) {
  const cluster::Cluster cluster = cluster::find_cluster(std::string{GetParam().cluster}).value();
  for (const int ranks : GetParam().ranks) {
    for (const std::int64_t bytes : kSizes) {
      const std::vector<AllReduceTime> times =
          simulate_all_reduce({.cluster = cluster}, ranks, {.bytes = bytes, .algorithm = "all"})
              .value();
      const auto chosen = std::min_element(
          times.begin(), times.end(),
          [](const auto& a, const auto& b) { return a.candidate.seconds < b.candidate.seconds; });
      EXPECT_LE(chosen->seconds, kWithin * times.front().seconds)
          << cluster.name << ", " << ranks << " ranks, " << bytes << " bytes\n"
          << table_of(times);
    }
  }
}

TEST(AgreementTest, HasEveryShippedCluster) {
  std::vector<std::string_view> tested;
  for (const Job& job : kJobs) tested.push_back(job.cluster);
  for (const std::string_view name : cluster::built_in_clusters())
    EXPECT_EQ(std::count(tested.begin(), tested.end(), name), 1) << name;
}

}  // namespace
}  // namespace sluice::simulate
