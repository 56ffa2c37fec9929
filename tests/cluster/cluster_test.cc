#include "cluster/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

namespace sluice::cluster {
namespace {

constexpr const char* kGood = R"(name = "two"
ranks_per_node = 4
[between]
gbit_per_s = 100
efficiency = 0.5
latency_us = 7
[inside]
gbyte_per_s = 40
latency_us = 3
[reduce]
gbyte_per_s = 200
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Cluster, ReadsItsConstants) {
  const Cluster cluster = parse_cluster(kGood, "two.toml").value();
  EXPECT_EQ(cluster.name, "two");
  EXPECT_DOUBLE_EQ(cluster.constants.between.bandwidth_bytes_per_s, 6.25e9);
  EXPECT_DOUBLE_EQ(cluster.constants.between.latency_s, 7e-6);
  EXPECT_DOUBLE_EQ(cluster.constants.inside.bandwidth_bytes_per_s, 40e9);
  EXPECT_DOUBLE_EQ(cluster.constants.reduce_s_per_byte, 5e-12);
}

TEST(Cluster, MeasuredAlgorithmsAreReadAndWrittenBack) {
  const Cluster cluster =
      parse_cluster(std::string{kGood} +
                        "[measured.direct]\ngbyte_per_s = 20\nlatency_us = 0.5\nmost_bytes = 9\n"
                        "[measured.\"halving_doubling:far\"]\ngbyte_per_s = 9\nlatency_us = 2\n",
                    "two.toml")
          .value();
  ASSERT_EQ(cluster.constants.measured.size(), 2U);
  EXPECT_EQ(cluster.constants.for_algorithm("direct").inside.bandwidth_bytes_per_s, 20e9);
  EXPECT_EQ(cluster.constants.for_algorithm("direct").reduce_s_per_byte, 0);
  EXPECT_EQ(cluster.constants.for_algorithm("ring").inside.bandwidth_bytes_per_s, 40e9);

  const Cluster again = parse_cluster(show_cluster(cluster), "again.toml").value();
  EXPECT_EQ(again.name, "two");
  EXPECT_EQ(again.ranks_per_node, 4);
  EXPECT_DOUBLE_EQ(again.constants.between.bandwidth_bytes_per_s, 6.25e9);
  EXPECT_DOUBLE_EQ(again.constants.reduce_s_per_byte, 5e-12);
  ASSERT_EQ(again.constants.measured.size(), 2U);
  EXPECT_EQ(again.constants.measured[0].most_bytes, 9);
  EXPECT_EQ(again.constants.measured[1].algorithm, "halving_doubling:far");
  EXPECT_DOUBLE_EQ(again.constants.measured[1].inside.latency_s, 2e-6);

  EXPECT_EQ(
      parse_cluster(std::string{kGood} + "[measured]\ndirect = 3\n", "c.toml").status().message(),
      "c.toml, line 13: measured.direct must be a table");
}

TEST(Cluster, FillsNodesInOrder) {
  const Cluster cluster = parse_cluster(kGood, "two.toml").value();
  EXPECT_EQ(cluster.topology(8).nodes, (std::vector{4, 4}));
  EXPECT_EQ(cluster.topology(9).nodes, (std::vector{4, 4, 1}));
  EXPECT_EQ(cluster.topology(1).nodes, std::vector{1});
}

TEST(Cluster, NamesTheLineThatIsWrong) {
  const auto why = [](const std::string& text) {
    return parse_cluster(text, "c.toml").status().message();
  };
  EXPECT_EQ(why(replaced(kGood, "latency_us = 7", "latncy_us = 7")),
            "c.toml, line 3: between.latency_us is missing");
  EXPECT_EQ(why(replaced(kGood, "efficiency = 0.5", "efficiency = 1.5")),
            "c.toml, line 5: between.efficiency must be a number from 1e-06 to 1");
  EXPECT_EQ(why(replaced(kGood, "name = \"two\"", "name = 2")),
            "c.toml, line 1: name must be a text in quotes");
  EXPECT_EQ(why(std::string{kGood} + "speed = 3\n"),
            "c.toml, line 12: there is no key reduce.speed");
  EXPECT_EQ(why(std::string{kGood} + "gbyte_per_m = 3\n"),
            "c.toml, line 12: there is no key reduce.gbyte_per_m, did you mean gbyte_per_s?");
  EXPECT_NE(why("name = [").find("c.toml, line 1: "), std::string::npos);
  EXPECT_NE(why("").find("name is missing"), std::string::npos);
}

TEST(Cluster, EveryFileOfTheFolderIsBuiltIn) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{SLUICE_SOURCE_DIR "/clusters"}) {
    ++files;
    const Result<Cluster> built_in = find_cluster(entry.path().stem().string());
    ASSERT_TRUE(built_in.ok()) << built_in.status().message();
    EXPECT_EQ(built_in.value().name, entry.path().stem());
    EXPECT_TRUE(find_cluster(entry.path().string()).ok()) << "and can be read from its path";
  }
  EXPECT_EQ(files, built_in_clusters().size());
}

// A number without a source is nobody's: each has a tag in the comment of its line.
TEST(Cluster, EveryNumberOfTheFolderHasItsSource) {
  const std::regex number{"^ *[a-z_]+ *= *(\\[*[0-9]).*"};
  const std::regex tagged{
      ".*#.*(\\[S\\]|\\[R\\]|\\[D\\]|\\[M\\]|\\[M\\?\\]|vendor|measured|assumed).*"};
  int numbers = 0;
  for (const auto& entry : std::filesystem::directory_iterator{SLUICE_SOURCE_DIR "/clusters"}) {
    std::ifstream file{entry.path()};
    int line = 0;
    for (std::string text; std::getline(file, text);) {
      ++line;
      if (!std::regex_match(text, number)) continue;
      ++numbers;
      EXPECT_TRUE(std::regex_match(text, tagged))
          << entry.path().filename() << ", line " << line << ": " << text;
    }
  }
  EXPECT_GT(numbers, 150);
}

TEST(Cluster, SuggestsTheNearestName) {
  EXPECT_EQ(find_cluster("abcj").status().message(),
            "there is no cluster and no file \"abcj\": did you mean abci?");
}

TEST(Cluster, RefusesAFileThatIsTooLong) {
  const std::string path = testing::TempDir() + "long.toml";
  std::ofstream{path} << std::string((1 << 20) + 1, '#');
  EXPECT_NE(find_cluster(path).status().message().find("too long"), std::string::npos);
}

TEST(Cluster, SwitchesAreReadShownAndLookedUp) {
  const std::string text =
      "name = \"c\"\nranks_per_node = 1\nswitches = [[\"a\", \"10.0.0.2\"], [\"c\"]]\n"
      "[between]\ngbit_per_s = 1\nefficiency = 1\nlatency_us = 1\n"
      "[inside]\ngbyte_per_s = 1\nlatency_us = 1\n[reduce]\ngbyte_per_s = 1\n";
  const Cluster cluster = parse_cluster(text, "c.toml").value();
  EXPECT_EQ(cluster.switch_of("a", "10.0.0.1"), 0);
  EXPECT_EQ(cluster.switch_of("b", "10.0.0.2"), 0);
  EXPECT_EQ(cluster.switch_of("c", ""), 1);
  EXPECT_EQ(cluster.switch_of("d", "10.0.0.4"), 2) << "one of its own";
  EXPECT_EQ(parse_cluster(show_cluster(cluster), "shown").value().switches, cluster.switches);

  const auto wrong = parse_cluster("name = \"c\"\nranks_per_node = 1\nswitches = [1]\n", "w.toml");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("w.toml"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cluster
