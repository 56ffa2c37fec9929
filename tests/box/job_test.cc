// The traffic of a job on the links between hosts, as the interfaces count it.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <numeric>
#include <optional>
#include <thread>

#include "base/format.h"
#include "tests/box/box_ranks.h"

namespace sluice::box {
namespace {

constexpr std::size_t kCount = std::size_t{1} << 20;
constexpr int kTimes = 4;

std::string add_up(Communicator& comm, const Gate& gate, const std::string& algorithm) {
  const Pool pool = comm.allocate(kCount * sizeof(float));
  const auto data = pool.as<float>();
  const CollectiveOptions options{.algorithm = algorithm};
  const auto fill = [&] {
    for (std::size_t i = 0; i < kCount; ++i)
      data[i] = static_cast<float>((i * 31 + static_cast<std::size_t>(comm.rank()) * 7) % 1009);
  };
  fill();
  comm.all_reduce(data, options).wait();  // opens connections and TCP windows
  comm.barrier();
  gate.pass();
  for (int i = 0; i < kTimes; ++i) {
    fill();
    comm.all_reduce(data, options).wait();
  }
  gate.pass();
  for (std::size_t i = 0; i < kCount; ++i) {
    std::size_t sum = 0;
    for (Rank rank = 0; rank < comm.size(); ++rank)
      sum += (i * 31 + static_cast<std::size_t>(rank) * 7) % 1009;
    if (data[i] != static_cast<float>(sum)) return base::format("element {} is wrong", i);
  }
  return "";
}

// Runs all_reduces on emulated hosts, and measures what the hosts send.
class Job : public testing::Test {
 protected:
  void make(const BoxOptions& options) {
    auto made = ClusterBox::make(options);
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    cluster_.emplace(std::move(made).value());
  }

  // The payload that each host sends in one all_reduce, as a multiple of the buffer.
  std::vector<double> sent(BoxJob job, const std::string& algorithm) {
    std::vector<LinkCounters> before;
    std::vector<double> sent;
    job.body = [&](Communicator& comm, const Gate& gate) { return add_up(comm, gate, algorithm); };
    job.at_gate = [&](int gate) {
      for (int host = 0; host < cluster_->hosts(); ++host) {
        const LinkCounters now = cluster_->counters(host);
        if (gate == 0) before.push_back(now);
        if (gate == 1)
          sent.push_back(now.payload_sent_since(before[static_cast<std::size_t>(host)]) / kTimes /
                         kCount / sizeof(float));
      }
      for (int group = 0; group < cluster_->groups() && cluster_->groups() > 1; ++group) {
        const LinkCounters now = cluster_->uplink_counters(group);
        if (gate == 0) before.push_back(now);
        if (gate == 1) {
          const int at = cluster_->hosts() + group;
          const LinkCounters& then = before[static_cast<std::size_t>(at)];
          uplink_.push_back(now.payload_sent_since(then) / kTimes / kCount / sizeof(float));
        }
      }
    };
    EXPECT_EQ(run_job(*cluster_, job), "");
    return sent;
  }

  std::optional<ClusterBox> cluster_;
  std::vector<double> uplink_;  // likewise the payload that each group sends through its uplink
};

// Without it the ranks would measure the links first.
const std::pair<std::string, std::string> kGenericTopology{"SLUICE_TOPOLOGY", "generic"};

TEST_F(Job, HierarchicalSendsTheBytesOfItsClosedFormBetweenHosts) {
  make({.hosts = 2, .mbit_per_s = 1000});
  if (IsSkipped()) return;
  const std::vector<double> sent = this->sent(
      {.hosts = {0, 0, 0, 0, 1, 1, 1, 1}, .environment = {kGenericTopology}}, "hierarchical");
  // With N nodes, an optimal all_reduce sends 2(N-1)/N of the buffer out of each node, whatever the
  // number of its ranks. That is 1 for two nodes.
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_NEAR(sent[0], 1, 0.03);
  EXPECT_NEAR(sent[1], 1, 0.03);
}

TEST_F(Job, ARingOfRanksInRoundRobinCrossesEachLinkOnceInEachDirection) {
  make({.hosts = 3, .mbit_per_s = 1000});
  if (IsSkipped()) return;
  const std::vector<double> sent =
      this->sent({.hosts = {0, 1, 2, 0, 1, 2}, .environment = {kGenericTopology}}, "ring");
  ASSERT_EQ(sent.size(), 3U);
  for (const double each : sent) EXPECT_NEAR(each, 2.0 * 5 / 6, 0.05);
}

TEST_F(Job, WithATopologyFileRanksOfOneSwitchAreNeighbours) {
  make({.hosts = 4, .mbit_per_s = 1000, .groups = {2, 2}, .uplink_mbit_per_s = 1000});
  if (IsSkipped()) return;
  const std::string file = testing::TempDir() + base::format("switches-{}.toml", getpid());
  std::ofstream{file} << "name = \"box\"\nranks_per_node = 1\n"
                      << base::format("switches = [[\"{}\", \"{}\"], [\"{}\", \"{}\"]]\n",
                                      cluster_->address(0), cluster_->address(1),
                                      cluster_->address(2), cluster_->address(3))
                      << "[between]\ngbit_per_s = 1\nefficiency = 0.9\nlatency_us = 20\n"
                      << "[inside]\ngbyte_per_s = 8\nlatency_us = 0.5\n"
                      << "[reduce]\ngbyte_per_s = 20\n";
  (void)sent({.hosts = {0, 2, 1, 3}, .environment = {{"SLUICE_TOPOLOGY", file}}}, "ring");
  std::remove(file.c_str());
  ASSERT_EQ(uplink_.size(), 2U);
  // One crossing in each direction is 2(n-1)/n of the buffer. In the order of their own numbers the
  // ranks would cross twice in each direction.
  for (const double each : uplink_) EXPECT_NEAR(each, 1.5, 0.05);
}

// 5 ranks are more than the cores of a small machine.
TEST_F(Job, RanksThatLookAtTheirSocketsBeforeTheySleepComputeTheSameAsThoseThatDoNot) {
  make({.hosts = 5, .mbit_per_s = 0});
  if (IsSkipped()) return;
  for (const std::string spin : {"on", "off"}) {
    const std::string wrong =
        run_job(*cluster_, {.hosts = {0, 1, 2, 3, 4},
                            .environment = {kGenericTopology, {"SLUICE_SPIN", spin}},
                            .body = [](Communicator& comm, const Gate&) -> std::string {
                              for (const std::size_t count : {0, 1, 7, 100'003, 1'000'003}) {
                                std::vector<float> data(count);
                                for (std::size_t i = 0; i < count; ++i)
                                  data[i] = static_cast<float>((i + 1) % 1000 * (comm.rank() + 1));
                                comm.all_reduce(data).wait();
                                for (std::size_t i = 0; i < count; ++i) {
                                  if (data[i] != static_cast<float>((i + 1) % 1000 * 15))
                                    return base::format("{} of {} is {}", i, count, data[i]);
                                }
                              }
                              return "";
                            }});
    EXPECT_EQ(wrong, "") << spin;
  }
}

TEST_F(Job, AnUnknownValueOfSluiceSpinIsRefused) {
  make({.hosts = 2});
  if (IsSkipped()) return;
  const std::string wrong =
      run_job(*cluster_, {.hosts = {0, 1},
                          .environment = {kGenericTopology, {"SLUICE_SPIN", "often"}},
                          .body = [](Communicator&, const Gate&) { return ""; }});
  EXPECT_NE(wrong.find("SLUICE_SPIN is \"often\": choose on or off"), std::string::npos) << wrong;
}

TEST_F(Job, ABarrierWaitsForRanksOfOtherHosts) {
  make({.hosts = 3});
  if (IsSkipped()) return;
  constexpr auto kLate = std::chrono::milliseconds{400};
  const std::string wrong = run_job(
      *cluster_, {.hosts = {0, 1, 2},
                  .environment = {kGenericTopology},
                  .body = [&](Communicator& comm, const Gate&) -> std::string {
                    comm.barrier();
                    const auto begin = std::chrono::steady_clock::now();
                    if (comm.rank() == 1) std::this_thread::sleep_for(kLate);
                    comm.barrier();
                    const bool waited = std::chrono::steady_clock::now() - begin >= kLate / 2;
                    return waited ? "" : "left the barrier before rank 1 had entered it";
                  }});
  EXPECT_EQ(wrong, "");
}

// The number of this process' sockets whose receive buffer was set to that size. The kernel doubles
// the size for its own use.
int sockets_with_receive_buffer(int bytes) {
  constexpr int kMostSockets = 1024;
  int found = 0;
  for (int socket = 0; socket < kMostSockets; ++socket) {
    int has = 0;
    socklen_t length = sizeof has;
    if (getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &has, &length) == 0) found += has == 2 * bytes;
  }
  return found;
}

TEST_F(Job, OnlyLongMessagesFromSeveralHostsBoundTheReceiveBuffers) {
  make({.hosts = 4, .mbit_per_s = 1000});
  if (IsSkipped()) return;
  const std::string file = testing::TempDir() + base::format("slow-{}.toml", getpid());
  std::ofstream{file} << "name = \"slow\"\nranks_per_node = 1\n"
                      << "[between]\ngbit_per_s = 0.8\nefficiency = 1\nlatency_us = 20\n"
                      << "[inside]\ngbyte_per_s = 8\nlatency_us = 0.5\n"
                      << "[reduce]\ngbyte_per_s = 20\n";
  const std::string wrong =
      run_job(*cluster_,
              {.hosts = {0, 1, 2, 3},
               .environment = {{"SLUICE_TOPOLOGY", file}},
               .body = [](Communicator& comm, const Gate&) -> std::string {
                 constexpr int kBound = 100'000;  // a millisecond of the link
                 constexpr std::size_t kShort = 4096;
                 std::vector<float> data(kCount);
                 const auto bounded_after = [&](std::size_t count, const char* algorithm) {
                   comm.all_reduce(std::span{data.data(), count}, {.algorithm = algorithm}).wait();
                   return sockets_with_receive_buffer(kBound);
                 };
                 if (bounded_after(kCount, "ring") != 0) return "a ring has one sender";
                 if (bounded_after(kShort, "halving_doubling") != 0) return "short messages";
                 const int bounded = bounded_after(kCount, "halving_doubling");
                 return bounded == 3 ? "" : base::format("{} of 3 sockets", bounded);
               }});
  std::remove(file.c_str());
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sluice::box
