#include "cli/bench/scaling.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sluice/status.h"

namespace sluice::cli {
namespace {

TEST(Scaling, WeakKeepsTheBatchPerRank) {
  const auto rows = scaling_rows({1, 2, 4}, {8, 16}, false);
  ASSERT_EQ(rows.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(rows[i].ranks, 1 << (i % 3));
    EXPECT_EQ(rows[i].batch, i < 3 ? 8 : 16);
  }
}

TEST(Scaling, StrongKeepsTheGlobalBatch) {
  const auto rows = scaling_rows({2, 4, 8}, {16}, true);
  ASSERT_EQ(rows.size(), 3U);
  for (const ScalingRow& row : rows) EXPECT_EQ(row.batch * row.ranks, 32);
  EXPECT_THROW((void)scaling_rows({1, 3}, {16}, true), Error);
}

TEST(Scaling, EfficiencyIsRelativeToTheFewestRanksWithTheSameBatch) {
  std::vector<ScalingRow> weak{{1, 8, 100}, {2, 8, 180}, {1, 16, 120}, {2, 16, 240}};
  set_efficiencies(weak, false);
  EXPECT_DOUBLE_EQ(weak[0].efficiency, 1);
  EXPECT_DOUBLE_EQ(weak[1].efficiency, 0.9);
  EXPECT_DOUBLE_EQ(weak[2].efficiency, 1);
  EXPECT_DOUBLE_EQ(weak[3].efficiency, 1);
  std::vector<ScalingRow> strong{{2, 16, 100}, {4, 8, 150}};
  set_efficiencies(strong, true);
  EXPECT_DOUBLE_EQ(strong[1].efficiency, 0.75);
}

TEST(Scaling, JsonHasTheDocumentedKeys) {
  const auto json =
      scaling_json({{.ranks = 2, .batch = 8, .images_per_s = 180, .efficiency = 0.9}});
  EXPECT_EQ(json.dump(), R"([{"ranks":2,"batch":8,"images_per_s":180.0,"efficiency":0.9}])");
}

const ScalingCurve kCurve{.title = "a <recipe> on b",
                          .points = {{8, 1, 800}, {64, 0.8, 5120}, {512, 0.5, 25600}}};

TEST(ScalingPlot, TextHasAPointForEachNumberOfRanks) {
  const std::string text = plot_text(kCurve);
  EXPECT_EQ(text.rfind("efficiency over ranks, simulated: a <recipe> on b\n", 0), 0U) << text;
  EXPECT_NE(text.find(" 100% |o"), std::string::npos) << text;
  // Ranks are on a logarithmic axis: 64 is half way from 8 to 512, at column 30 of 60.
  const std::size_t eighty = text.find("  80% |");
  ASSERT_NE(eighty, std::string::npos);
  EXPECT_EQ(text[eighty + 7 + 30], 'o') << text;
  const std::size_t fifty = text.find("  50% |");
  EXPECT_EQ(text[fifty + 7 + 60], 'o') << text;
  EXPECT_NE(text.find("512"), std::string::npos);
}

TEST(ScalingPlot, SvgIsCompleteAndLabelledAsSimulated) {
  const std::string svg = plot_svg(kCurve);
  EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0U);
  EXPECT_NE(svg.find("a &lt;recipe&gt; on b (simulated)"), std::string::npos);
  EXPECT_NE(svg.find("<title>64 ranks: 80.0%, 5120 images/s, simulated</title>"), std::string::npos)
      << svg;
  // From 60 to 610 across; 100% at 50, 0% at 340.
  EXPECT_NE(svg.find("points=\"60.0,50.0 335.0,108.0 610.0,195.0\""), std::string::npos) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(ScalingPlot, OnePointIsInTheMiddle) {
  const ScalingCurve one{.title = "t", .points = {{8, 0.9, 1}}};
  EXPECT_NE(plot_svg(one).find("points=\"335.0,79.0\""), std::string::npos);
  EXPECT_NE(plot_text(one).find('o'), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
