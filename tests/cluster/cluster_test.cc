#include "cluster/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

namespace sluice::cluster {
namespace {

const std::string kGood = R"(name = "two"
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
)";  // 11 lines

std::string error_of(const std::string& more) {
  return parse_cluster(kGood + more, "c.toml").status().message();
}

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
      parse_cluster(kGood +
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

  EXPECT_EQ(parse_cluster(kGood + "[measured]\ndirect = 3\n", "c.toml").status().message(),
            "c.toml, line 13: measured.direct must be a table");
}

TEST(Cluster, AGapIsAPartOfTheLatencyUnlessTheFileNamesOne) {
  const Cluster cluster =
      parse_cluster(replaced(kGood, "latency_us = 3", "latency_us = 3\ngap_us = 0.25"), "c.toml")
          .value();
  EXPECT_DOUBLE_EQ(cluster.constants.inside.gap_s, 0.25e-6);
  EXPECT_GT(cluster.constants.between.gap_s, 0);
  EXPECT_LT(cluster.constants.between.gap_s, 7e-6);
  EXPECT_EQ(parse_cluster(replaced(kGood, "latency_us = 7", "latency_us = 0"), "c.toml")
                .value()
                .constants.between.gap_s,
            0);
}

TEST(Cluster, EveryShippedNetworkIsWrittenAndReadBack) {
  for (const std::string_view name : built_in_clusters()) {
    const Cluster cluster = find_cluster(std::string{name}).value();
    if (!cluster.constants.measured.empty()) continue;
    const Cluster again = parse_cluster(show_cluster(cluster), std::string{name}).value();
    const NetworkShape& network = cluster.constants.network;
    const NetworkShape& read = again.constants.network;
    EXPECT_EQ(read.nics, network.nics);
    EXPECT_EQ(read.striped, network.striped);
    EXPECT_EQ(read.torus, network.torus);
    EXPECT_DOUBLE_EQ(read.staging_bytes_per_s, network.staging_bytes_per_s);
    EXPECT_DOUBLE_EQ(read.tree_latency_s, network.tree_latency_s);
    EXPECT_DOUBLE_EQ(read.hop_latency_s, network.hop_latency_s);
    ASSERT_EQ(read.levels.size(), network.levels.size());
    for (std::size_t i = 0; i < read.levels.size(); ++i) {
      EXPECT_EQ(read.levels[i].nodes, network.levels[i].nodes);
      EXPECT_DOUBLE_EQ(read.levels[i].oversubscription, network.levels[i].oversubscription);
      EXPECT_DOUBLE_EQ(read.levels[i].latency_s, network.levels[i].latency_s);
    }
    EXPECT_DOUBLE_EQ(again.constants.between.gap_s, cluster.constants.between.gap_s);
    EXPECT_DOUBLE_EQ(again.constants.inside.gap_s, cluster.constants.inside.gap_s);
  }
}

TEST(Cluster, FillsNodesInOrder) {
  const Cluster cluster = parse_cluster(kGood, "two.toml").value();
  EXPECT_EQ(cluster.topology(8).nodes, (std::vector{4, 4}));
  EXPECT_EQ(cluster.topology(9).nodes, (std::vector{4, 4, 1}));
  EXPECT_EQ(cluster.topology(1).nodes, std::vector{1});
}

TEST(Cluster, ErrorsNameTheLine) {
  const auto error_in = [](const std::string& text) {
    return parse_cluster(text, "c.toml").status().message();
  };
  EXPECT_EQ(error_in(replaced(kGood, "latency_us = 7", "latncy_us = 7")),
            "c.toml, line 3: between.latency_us is missing");
  EXPECT_EQ(error_in(replaced(kGood, "efficiency = 0.5", "efficiency = 1.5")),
            "c.toml, line 5: between.efficiency must be a number from 1e-06 to 1");
  EXPECT_EQ(error_in(replaced(kGood, "name = \"two\"", "name = 2")),
            "c.toml, line 1: name must be a text in quotes");
  EXPECT_EQ(error_of("speed = 3\n"), "c.toml, line 12: there is no key reduce.speed");
  EXPECT_EQ(error_of("gbyte_per_m = 3\n"),
            "c.toml, line 12: there is no key reduce.gbyte_per_m, did you mean gbyte_per_s?");
  EXPECT_NE(error_in("name = [").find("c.toml, line 1: "), std::string::npos);
  EXPECT_NE(error_in("").find("name is missing"), std::string::npos);
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

// Every number has the tag of its source in the comment of its line.
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

TEST(Cluster, AFileThatIsTooLongIsAnError) {
  const std::string path = testing::TempDir() + "long.toml";
  std::ofstream{path} << std::string((1 << 20) + 1, '#');
  EXPECT_NE(find_cluster(path).status().message().find("too long"), std::string::npos);
}

TEST(Cluster, ReadsShowsAndFindsSwitches) {
  const std::string text =
      "name = \"c\"\nranks_per_node = 1\nswitches = [[\"a\", \"10.0.0.2\"], [\"c\"]]\n"
      "[between]\ngbit_per_s = 1\nefficiency = 1\nlatency_us = 1\n"
      "[inside]\ngbyte_per_s = 1\nlatency_us = 1\n[reduce]\ngbyte_per_s = 1\n";
  const Cluster cluster = parse_cluster(text, "c.toml").value();
  EXPECT_EQ(cluster.switch_of("a", "10.0.0.1"), 0);
  EXPECT_EQ(cluster.switch_of("b", "10.0.0.2"), 0);
  EXPECT_EQ(cluster.switch_of("c", ""), 1);
  EXPECT_EQ(cluster.switch_of("d", "10.0.0.4"), 2) << "an unknown host";
  EXPECT_EQ(parse_cluster(show_cluster(cluster), "shown").value().switches, cluster.switches);

  const auto wrong = parse_cluster("name = \"c\"\nranks_per_node = 1\nswitches = [1]\n", "w.toml");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("w.toml"), std::string::npos);
}

TEST(ClusterNetwork, IsOneSwitchByDefault) {
  const NetworkShape shape = parse_cluster(kGood, "c.toml").value().constants.network;
  EXPECT_EQ(shape.nics, 1);
  EXPECT_TRUE(shape.striped);
  EXPECT_TRUE(shape.levels.empty());
  EXPECT_TRUE(shape.torus.empty());
}

TEST(ClusterNetwork, ReadsNicsStagingAndLevels) {
  const NetworkShape shape =
      parse_cluster(kGood +
                        "[network]\nnics = 2\nstriped = false\nnic_of = [0, 1, 0, 1]\n"
                        "staging_gbyte_per_s = 16\nbridge_gbyte_per_s = 10\n"
                        "[[network.level]]\nnodes = 16\noversubscription = 4\nlatency_us = 0.5\n"
                        "[[network.level]]\nnodes = 64\noversubscription = 1\n",
                    "c.toml")
          .value()
          .constants.network;
  EXPECT_EQ(shape.nics, 2);
  EXPECT_EQ(shape.nic_of, (std::vector{0, 1, 0, 1}));
  EXPECT_DOUBLE_EQ(shape.staging_bytes_per_s, 16e9);
  EXPECT_DOUBLE_EQ(shape.bridge_bytes_per_s, 10e9);
  ASSERT_EQ(shape.levels.size(), 2U);
  EXPECT_EQ(shape.levels[0].nodes, 16);
  EXPECT_DOUBLE_EQ(shape.levels[0].oversubscription, 4);
  EXPECT_DOUBLE_EQ(shape.levels[0].latency_s, 0.5e-6);
  EXPECT_EQ(shape.levels[1].nodes, 64);
}

TEST(ClusterNetwork, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("[network]\nnics = 5\n"),
            "c.toml, line 13: network.nics must be a number from 1 to 4");
  EXPECT_EQ(error_of("[network]\nstripd = true\n"),
            "c.toml, line 13: there is no key network.stripd, did you mean striped?");
  EXPECT_EQ(error_of("[network]\nstriped = 1\n"),
            "c.toml, line 13: network.striped must be true or false");
  EXPECT_EQ(error_of("[network]\nnics = 2\nstriped = false\nnic_of = [0, 1]\n"),
            "c.toml, line 15: network.nic_of must name the NIC of each of the 4 devices, not of 2");
  EXPECT_EQ(error_of("[network]\nlevel = 3\n"),
            "c.toml, line 13: network.level must be tables: [[network.level]]");
  EXPECT_EQ(
      error_of("[[network.level]]\nnodes = 16\noversubscription = 0.5\n"),
      "c.toml, line 14: network.level.oversubscription must be a number from 1 to 1000000000");
  EXPECT_EQ(
      error_of("[[network.level]]\nnodes = 16\noversubscription = 1\n"
               "[[network.level]]\nnodes = 24\noversubscription = 1\n"),
      "c.toml, line 16: network.level.nodes must be a multiple of the 16 nodes of the level below");
  EXPECT_EQ(error_of("[network]\ntorus = [4, 4]\n"),
            "c.toml, line 13: network.torus has one device at each point: set ranks_per_node to 1");
}

const std::string kSpeed =
    "[[speed]]\nframework = \"f\"\nprecision = \"f16\"\nmodel = \"resnet50\"\n";

TEST(DeviceSpeed, IsACurveOverTheBatch) {
  const Cluster cluster =
      parse_cluster(kGood + kSpeed +
                        "images_per_s = [[10, 100], [20, 160], [40, 200]]\nstartup_s = 3\n"
                        "optimizer_s = 0.02\ninput_images_per_s = 500\n",
                    "c.toml")
          .value();
  const DeviceSpeed speed = find_speed(cluster.speeds, "", "f16", "resnet50", "c").value();
  EXPECT_DOUBLE_EQ(speed.startup_s, 3);
  EXPECT_DOUBLE_EQ(speed.input_images_per_s, 500);
  EXPECT_DOUBLE_EQ(speed.step_seconds(10), 0.1);
  EXPECT_DOUBLE_EQ(speed.pass_seconds(10), 0.08) << "without the optimizer";
  EXPECT_DOUBLE_EQ(speed.step_seconds(20), 0.125);
  EXPECT_DOUBLE_EQ(speed.step_seconds(15), 0.1125) << "linear between two points";
  EXPECT_DOUBLE_EQ(speed.step_seconds(4), 0.085) << "below the first, 75 ms and 2.5 ms an image";
  EXPECT_DOUBLE_EQ(speed.step_seconds(60), 0.275) << "above the last";
  const DeviceSpeed one{.curve = {{32, 64}}};
  EXPECT_DOUBLE_EQ(one.step_seconds(48), 0.75) << "one point: proportional";
}

TEST(DeviceSpeed, BelongsToFrameworkPrecisionAndModel) {
  const std::vector<DeviceSpeed> speeds{{"a", "f16", "resnet50", {{1, 1}}},
                                        {"b", "f16", "resnet50", {{1, 2}}},
                                        {"a", "f32", "alexnet", {{1, 3}}}};
  EXPECT_EQ(find_speed(speeds, "b", "f16", "resnet50", "c").value().curve[0].images_per_s, 2);
  EXPECT_EQ(find_speed(speeds, "", "f32", "alexnet", "c").value().curve[0].images_per_s, 3);
  EXPECT_EQ(find_speed(speeds, "", "f16", "resnet50", "c").status().message(),
            "cluster c has several speeds for f16 resnet50: choose a framework from a, b");
  EXPECT_EQ(
      find_speed(speeds, "a", "f16", "alexnet", "c").status().message(),
      "cluster c has no speed for a f16 alexnet: it has a f16 resnet50, b f16 resnet50, a f32 "
      "alexnet");
}

TEST(DeviceSpeed, ErrorsNameTheLine) {
  EXPECT_EQ(
      error_of(kSpeed + "images_per_s = [[2, 8], [1, 9]]\n"),
      "c.toml, line 16: speed.images_per_s must be pairs of numbers from 0.001 to 1000000000, "
      "the first of each rising: [[32, 157], [64, 160]]");
  EXPECT_EQ(error_of(kSpeed + "images_per_s = [[10, 10], [20, 30]]\n"),
            "c.toml, line 16: speed.images_per_s computes a batch of 20 faster than a batch "
            "of 10");
  EXPECT_EQ(error_of(kSpeed + "images_per_s = [[1, 10]]\noptimizer_s = 0.1\n"),
            "c.toml, line 17: speed.optimizer_s must be shorter than a step");
  EXPECT_EQ(error_of("[[speed]]\nframework = \"f\"\nprecision = \"f8\"\nmodel = \"resnet50\"\n"
                     "images_per_s = [[1, 1]]\n"),
            "c.toml, line 14: speed.precision must be one of f32, f16, bf16");
  EXPECT_EQ(error_of("[[speed]]\nframework = \"f\"\nprecision = \"f16\"\nmodel = \"resnet51\"\n"
                     "images_per_s = [[1, 1]]\n"),
            "c.toml, line 15: speed.model is wrong: no model is called \"resnet51\"; did you mean "
            "resnet50?");
}

}  // namespace
}  // namespace sluice::cluster
