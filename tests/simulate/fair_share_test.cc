#include "simulate/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::simulate {
namespace {

FlowSet flows_of(const std::vector<std::vector<LinkId>>& ways) {
  FlowSet flows;
  for (const auto& way : ways) {
    flows.links.insert(flows.links.end(), way.begin(), way.end());
    flows.ends.push_back(static_cast<std::uint32_t>(flows.links.size()));
  }
  return flows;
}

TEST(FairShare, OneLinkIsSharedAlike) {
  const std::vector<double> links{12};
  FairShare share{links};
  EXPECT_EQ(share.rates(flows_of({{0}, {0}, {0}})), (std::vector<double>{4, 4, 4}));
}

TEST(FairShare, WhatAFlowCannotUseOthersGet) {
  // The textbook case: a long flow over both links, one more on each; the second link is wide.
  const std::vector<double> links{2, 10};
  FairShare share{links};
  EXPECT_EQ(share.rates(flows_of({{0, 1}, {0}, {1}})), (std::vector<double>{1, 1, 9}));
}

TEST(FairShare, KeepsNothingFromTheQuestionBefore) {
  const std::vector<double> links{2, 10};
  FairShare share{links};
  (void)share.rates(flows_of({{0, 1}, {0}, {1}}));
  EXPECT_EQ(share.rates(flows_of({{1}})), std::vector<double>{10});
  EXPECT_TRUE(share.rates(flows_of({})).empty());
}

TEST(FairShare, EveryFlowHasAFullLinkOnWhichNobodyHasMore) {
  // That is what max-min fair means, and nothing else is: checked on random networks.
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    std::vector<double> links(1 + random() % 8);
    for (double& link : links) link = 1 + static_cast<double>(random() % 20);
    std::vector<std::vector<LinkId>> ways(1 + random() % 12);
    for (auto& way : ways) {
      for (std::size_t l = 0; l < links.size(); ++l) {
        if (random() % 3 == 0) way.push_back(static_cast<LinkId>(l));
      }
      if (way.empty()) way.push_back(0);
    }
    FairShare share{links};
    const std::vector<double> rates = share.rates(flows_of(ways));
    std::vector<double> used(links.size(), 0);
    std::vector<double> most(links.size(), 0);
    for (std::size_t f = 0; f < ways.size(); ++f) {
      for (const LinkId link : ways[f]) {
        used[static_cast<std::size_t>(link)] += rates[f];
        most[static_cast<std::size_t>(link)] =
            std::max(most[static_cast<std::size_t>(link)], rates[f]);
      }
    }
    for (std::size_t l = 0; l < links.size(); ++l) EXPECT_LE(used[l], links[l] * (1 + 1e-9));
    for (std::size_t f = 0; f < ways.size(); ++f) {
      EXPECT_TRUE(std::any_of(ways[f].begin(), ways[f].end(),
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
