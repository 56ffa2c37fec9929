#include "bootstrap/host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace sluice::bootstrap {
namespace {

TEST(Cores, AllAreUsedAndSharedEvenly) {
  for (int count = 1; count <= 20; ++count) {
    std::vector<int> cores(static_cast<std::size_t>(count));
    std::iota(cores.begin(), cores.end(), 3);
    for (int ranks = 1; ranks <= 45; ++ranks) {
      std::map<int, int> ranks_of_core;
      for (Rank rank = 0; rank < ranks; ++rank) {
        const auto share = share_of_cores(cores, ranks, rank);
        const auto least = static_cast<std::size_t>(std::max(1, count / ranks));
        EXPECT_GE(share.size(), least);
        EXPECT_LE(share.size(), least + 1);
        for (const int core : share) ++ranks_of_core[core];
      }
      EXPECT_EQ(ranks_of_core.size(), static_cast<std::size_t>(count));
      const auto [few, many] =
          std::minmax_element(ranks_of_core.begin(), ranks_of_core.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; });
      EXPECT_LE(many->second - few->second, 1) << count << " cores, " << ranks << " ranks";
      EXPECT_EQ(many->second, (ranks + count - 1) / count);
    }
  }
}

TEST(Cores, AtLeastOneIsUsable) {
  const std::vector<int> cores = usable_cores();
  ASSERT_FALSE(cores.empty());
  EXPECT_TRUE(pin_to(cores));
  EXPECT_EQ(usable_cores(), cores);
}

}  // namespace
}  // namespace sluice::bootstrap
