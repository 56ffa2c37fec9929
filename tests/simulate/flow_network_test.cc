#include "simulate/flow_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/simulate/fabrics.h"

namespace sluice::simulate {
namespace {

struct Route {
  double latency_s;
  std::vector<double> rates;
};

Route route(const FlowNetwork& network, Rank from, Rank to) {
  std::vector<LinkId> links;
  const double latency = network.route(from, to, links);
  Route found{latency, {}};
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
  EXPECT_EQ(route(network, 0, 3).rates, (std::vector<double>{10e9, 10e9}));
  EXPECT_DOUBLE_EQ(route(network, 0, 3).latency_s, 2e-6);
  EXPECT_EQ(route(network, 0, 7).rates, (std::vector<double>{1e9, 1e9}));
  EXPECT_DOUBLE_EQ(route(network, 0, 7).latency_s, 10e-6);
  EXPECT_EQ(links(network, 0, 7), links(network, 1, 4)) << "ranks of a node share its NICs";
  EXPECT_NE(links(network, 0, 7), links(network, 7, 0)) << "directions are separate";
}

TEST(FlowNetwork, DevicesUseTheirOwnNicUnlessStriped) {
  cluster::Cluster cluster = noded_fabric(4);
  cluster.constants.network.nics = 2;
  EXPECT_EQ(route(FlowNetwork::of(cluster, 8).value(), 0, 4).rates,
            (std::vector<double>{1e9, 1e9}));
  cluster.constants.network.striped = false;
  const FlowNetwork network = FlowNetwork::of(cluster, 8).value();
  EXPECT_EQ(route(network, 0, 4).rates, (std::vector<double>{5e8, 5e8}));
  EXPECT_EQ(links(network, 0, 4), links(network, 1, 5));
  EXPECT_NE(links(network, 1, 5), links(network, 2, 6));
  cluster.constants.network.nic_of = {0, 1, 0, 1};
  const FlowNetwork assigned = FlowNetwork::of(cluster, 8).value();
  EXPECT_EQ(links(assigned, 0, 4), links(assigned, 2, 6));
}

TEST(FlowNetwork, UplinksCarryLessThanTheirNodes) {
  cluster::Cluster cluster = thin_tree(4, 4);
  cluster.constants.network.levels[0].latency_s = 1e-6;
  const FlowNetwork network = FlowNetwork::of(cluster, 16).value();
  EXPECT_EQ(route(network, 0, 3).rates, (std::vector<double>{1e9, 1e9}));
  EXPECT_EQ(route(network, 0, 4).rates, (std::vector<double>{1e9, 1e9, 1e9, 1e9}))
      << "4 nodes of 1 GB/s over 4";
  EXPECT_DOUBLE_EQ(route(network, 0, 4).latency_s, 12e-6);
}

TEST(FlowNetwork, ATorusRouteTakesTheShorterWay) {
  cluster::Cluster cluster = flat_fabric();
  cluster.constants.network.torus = {4, 4};
  cluster.constants.network.hop_latency_s = 1e-6;
  const FlowNetwork network = FlowNetwork::of(cluster, 16).value();
  EXPECT_EQ(links(network, 0, 1).size(), 1U);
  EXPECT_EQ(links(network, 0, 3).size(), 1U) << "around the torus";
  EXPECT_EQ(links(network, 0, 10).size(), 4U) << "two across, two down";
  EXPECT_DOUBLE_EQ(route(network, 0, 10).latency_s, 13e-6);
  EXPECT_EQ(links(FlowNetwork::of(cluster, 8).value(), 0, 4).size(), 1U) << "8 ranks are 2 x 4";
}

TEST(FlowNetwork, ASlowNodeOfATorusIsSlowFromAllSides) {
  cluster::Cluster cluster = flat_fabric();
  cluster.constants.network.torus = {4, 4};
  const FlowNetwork network =
      FlowNetwork::of(cluster, 16, {.slow_node = 5, .slow_part = 0.5}).value();
  for (const Rank neighbour : {1, 4, 6, 9}) {
    EXPECT_EQ(route(network, 5, neighbour).rates, std::vector<double>{0.5e9});
    EXPECT_EQ(route(network, neighbour, 5).rates, std::vector<double>{0.5e9});
  }
  EXPECT_EQ(route(network, 0, 1).rates, std::vector<double>{1e9});
  EXPECT_EQ(route(network, 10, 9).rates, std::vector<double>{1e9});
}

TEST(FlowNetwork, StagingAndBridgeAreShared) {
  cluster::Cluster cluster = noded_fabric(4);
  cluster.constants.network.staging_bytes_per_s = 3e9;
  cluster.constants.network.bridge_bytes_per_s = 4e9;
  const FlowNetwork network = FlowNetwork::of(cluster, 8).value();
  EXPECT_EQ(route(network, 0, 1).rates, (std::vector<double>{3e9, 10e9, 4e9, 10e9}));
  EXPECT_EQ(route(network, 0, 4).rates, (std::vector<double>{3e9, 3e9, 1e9, 1e9}));
}

TEST(FlowNetwork, ConditionsSlowTheirLinks) {
  const FlowNetwork loaded = FlowNetwork::of(noded_fabric(4), 8, {.background = 0.25}).value();
  EXPECT_EQ(route(loaded, 0, 4).rates, (std::vector<double>{0.75e9, 0.75e9}));
  EXPECT_EQ(route(loaded, 0, 1).rates, (std::vector<double>{10e9, 10e9}));
  const FlowNetwork slow =
      FlowNetwork::of(noded_fabric(4), 12, {.slow_node = 1, .slow_part = 0.1}).value();
  EXPECT_EQ(route(slow, 0, 4).rates, (std::vector<double>{1e9, 0.1e9}));
  EXPECT_EQ(route(slow, 4, 0).rates, (std::vector<double>{0.1e9, 1e9}));
  EXPECT_EQ(route(slow, 0, 8).rates, (std::vector<double>{1e9, 1e9}));
  EXPECT_EQ(FlowNetwork::of(noded_fabric(4), 8, {.slow_node = 2}).status().message(),
            "slow_node 2 does not exist: 8 ranks use nodes 0 to 1");
  EXPECT_NE(FlowNetwork::of(noded_fabric(4), 8, {.slow_node = 1, .slow_part = 0})
                .status()
                .message()
                .find("use a fraction above 0, at most 1"),
            std::string::npos);
}

FlowSet flows_of(const std::vector<std::vector<LinkId>>& routes) {
  FlowSet flows;
  for (const auto& route : routes) {
    flows.links.insert(flows.links.end(), route.begin(), route.end());
    flows.ends.push_back(static_cast<std::uint32_t>(flows.links.size()));
  }
  return flows;
}

TEST(FairShare, FlowsShareOneLinkEqually) {
  const std::vector<double> links{12};
  FairShare share{links};
  EXPECT_EQ(share.rates(flows_of({{0}, {0}, {0}})), (std::vector<double>{4, 4, 4}));
}

TEST(FairShare, OtherFlowsGetTheRateThatAFlowCannotUse) {
  // The textbook case: a long flow over both links, one more on each; the second link is wide.
  const std::vector<double> links{2, 10};
  FairShare share{links};
  EXPECT_EQ(share.rates(flows_of({{0, 1}, {0}, {1}})), (std::vector<double>{1, 1, 9}));
}

TEST(FairShare, KeepsNothingFromThePreviousCall) {
  const std::vector<double> links{2, 10};
  FairShare share{links};
  (void)share.rates(flows_of({{0, 1}, {0}, {1}}));
  EXPECT_EQ(share.rates(flows_of({{1}})), std::vector<double>{10});
  EXPECT_TRUE(share.rates(flows_of({})).empty());
}

TEST(FairShare, EveryFlowHasAFullLinkOnWhichNoFlowHasMore) {
  // This is the definition of max-min fairness, checked on random networks.
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    std::vector<double> links(1 + random() % 8);
    for (double& link : links) link = 1 + static_cast<double>(random() % 20);
    std::vector<std::vector<LinkId>> routes(1 + random() % 12);
    for (auto& route : routes) {
      for (std::size_t l = 0; l < links.size(); ++l) {
        if (random() % 3 == 0) route.push_back(static_cast<LinkId>(l));
      }
      if (route.empty()) route.push_back(0);
    }
    FairShare share{links};
    const std::vector<double> rates = share.rates(flows_of(routes));
    std::vector<double> used(links.size(), 0);
    std::vector<double> most(links.size(), 0);
    for (std::size_t f = 0; f < routes.size(); ++f) {
      for (const LinkId link : routes[f]) {
        used[static_cast<std::size_t>(link)] += rates[f];
        most[static_cast<std::size_t>(link)] =
            std::max(most[static_cast<std::size_t>(link)], rates[f]);
      }
    }
    for (std::size_t l = 0; l < links.size(); ++l) EXPECT_LE(used[l], links[l] * (1 + 1e-9));
    for (std::size_t f = 0; f < routes.size(); ++f) {
      EXPECT_TRUE(std::any_of(routes[f].begin(), routes[f].end(),
                              [&](LinkId link) {
                                const auto l = static_cast<std::size_t>(link);
                                return used[l] >= links[l] * (1 - 1e-9) &&
                                       rates[f] >= most[l] * (1 - 1e-9);
                              }))
          << "round " << round << ", flow " << f;
    }
  }
}

}  // namespace
}  // namespace sluice::simulate
