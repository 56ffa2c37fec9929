#include "simulate/flow_network.h"

#include <gtest/gtest.h>

#include "tests/simulate/fabrics.h"

namespace sluice::simulate {
namespace {

struct Way {
  double latency_s;
  std::vector<double> rates;
};

Way way(const FlowNetwork& network, Rank from, Rank to) {
  std::vector<LinkId> links;
  const double latency = network.route(from, to, links);
  Way found{latency, {}};
  for (const LinkId link : links)
    found.rates.push_back(network.bytes_per_s()[static_cast<std::size_t>(link)]);
  return found;
}

std::vector<LinkId> links(const FlowNetwork& network, Rank from, Rank to) {
  std::vector<LinkId> found;
  (void)network.route(from, to, found);
  return found;
}

TEST(FlowNetwork, MessagesCrossPortsInsideAndNicsBetween) {
  const FlowNetwork network = FlowNetwork::of(noded_fabric(4), 8).value();
  EXPECT_EQ(way(network, 0, 3).rates, (std::vector<double>{10e9, 10e9}));
  EXPECT_DOUBLE_EQ(way(network, 0, 3).latency_s, 2e-6);
  EXPECT_EQ(way(network, 0, 7).rates, (std::vector<double>{1e9, 1e9}));
  EXPECT_DOUBLE_EQ(way(network, 0, 7).latency_s, 10e-6);
  EXPECT_EQ(links(network, 0, 7), links(network, 1, 4)) << "ranks of a node share its NICs";
  EXPECT_NE(links(network, 0, 7), links(network, 7, 0)) << "directions do not";
}

TEST(FlowNetwork, DevicesUseTheirOwnNicUnlessStriped) {
  cluster::Cluster cluster = noded_fabric(4);
  cluster.network.nics = 2;
  EXPECT_EQ(way(FlowNetwork::of(cluster, 8).value(), 0, 4).rates, (std::vector<double>{1e9, 1e9}));
  cluster.network.striped = false;
  const FlowNetwork network = FlowNetwork::of(cluster, 8).value();
  EXPECT_EQ(way(network, 0, 4).rates, (std::vector<double>{5e8, 5e8}));
  EXPECT_EQ(links(network, 0, 4), links(network, 1, 5));
  EXPECT_NE(links(network, 1, 5), links(network, 2, 6));
  cluster.network.nic_of = {0, 1, 0, 1};
  const FlowNetwork dealt = FlowNetwork::of(cluster, 8).value();
  EXPECT_EQ(links(dealt, 0, 4), links(dealt, 2, 6));
}

TEST(FlowNetwork, UplinksCarryLessThanWhatIsBelow) {
  cluster::Cluster cluster = thin_tree(4, 4);
  cluster.network.levels[0].latency_s = 1e-6;
  const FlowNetwork network = FlowNetwork::of(cluster, 16).value();
  EXPECT_EQ(way(network, 0, 3).rates, (std::vector<double>{1e9, 1e9}));
  EXPECT_EQ(way(network, 0, 4).rates, (std::vector<double>{1e9, 1e9, 1e9, 1e9}))
      << "4 nodes of 1 GB/s over 4";
  EXPECT_DOUBLE_EQ(way(network, 0, 4).latency_s, 12e-6);
}

TEST(FlowNetwork, ATorusIsWalkedTheShortWay) {
  cluster::Cluster cluster = flat_fabric();
  cluster.network.torus = {4, 4};
  cluster.network.hop_latency_s = 1e-6;
  const FlowNetwork network = FlowNetwork::of(cluster, 16).value();
  EXPECT_EQ(links(network, 0, 1).size(), 1U);
  EXPECT_EQ(links(network, 0, 3).size(), 1U) << "round the back";
  EXPECT_EQ(links(network, 0, 10).size(), 4U) << "two across, two down";
  EXPECT_DOUBLE_EQ(way(network, 0, 10).latency_s, 13e-6);
  EXPECT_EQ(links(FlowNetwork::of(cluster, 8).value(), 0, 4).size(), 1U) << "a part of it: 2 x 4";
}

TEST(FlowNetwork, ASlowNodeOfATorusIsSlowFromAllSides) {
  cluster::Cluster cluster = flat_fabric();
  cluster.network.torus = {4, 4};
  const FlowNetwork network =
      FlowNetwork::of(cluster, 16, {.slow_node = 5, .slow_part = 0.5}).value();
  for (const Rank neighbour : {1, 4, 6, 9}) {
    EXPECT_EQ(way(network, 5, neighbour).rates, std::vector<double>{0.5e9});
    EXPECT_EQ(way(network, neighbour, 5).rates, std::vector<double>{0.5e9});
  }
  EXPECT_EQ(way(network, 0, 1).rates, std::vector<double>{1e9});
  EXPECT_EQ(way(network, 10, 9).rates, std::vector<double>{1e9});
}

TEST(FlowNetwork, StagingAndBridgeAreShared) {
  cluster::Cluster cluster = noded_fabric(4);
  cluster.network.staging_bytes_per_s = 3e9;
  cluster.network.bridge_bytes_per_s = 4e9;
  const FlowNetwork network = FlowNetwork::of(cluster, 8).value();
  EXPECT_EQ(way(network, 0, 1).rates, (std::vector<double>{3e9, 10e9, 4e9, 10e9}));
  EXPECT_EQ(way(network, 0, 4).rates, (std::vector<double>{3e9, 3e9, 1e9, 1e9}));
}

TEST(FlowNetwork, ConditionsOfTheDay) {
  const FlowNetwork loaded = FlowNetwork::of(noded_fabric(4), 8, {.background = 0.25}).value();
  EXPECT_EQ(way(loaded, 0, 4).rates, (std::vector<double>{0.75e9, 0.75e9}));
  EXPECT_EQ(way(loaded, 0, 1).rates, (std::vector<double>{10e9, 10e9}));
  const FlowNetwork slow =
      FlowNetwork::of(noded_fabric(4), 12, {.slow_node = 1, .slow_part = 0.1}).value();
  EXPECT_EQ(way(slow, 0, 4).rates, (std::vector<double>{1e9, 0.1e9}));
  EXPECT_EQ(way(slow, 4, 0).rates, (std::vector<double>{0.1e9, 1e9}));
  EXPECT_EQ(way(slow, 0, 8).rates, (std::vector<double>{1e9, 1e9}));
  EXPECT_EQ(FlowNetwork::of(noded_fabric(4), 8, {.slow_node = 2}).status().message(),
            "there is no node 2 to be slow: 8 ranks are on nodes 0 to 1");
  EXPECT_NE(FlowNetwork::of(noded_fabric(4), 8, {.slow_node = 1, .slow_part = 0})
                .status()
                .message()
                .find("nothing would ever arrive"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::simulate
