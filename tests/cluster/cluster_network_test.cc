// What only the simulator reads of a cluster file: the network's shape and the devices' speeds.
#include <gtest/gtest.h>

#include <string>

#include "cluster/cluster.h"

namespace sluice::cluster {
namespace {

const std::string kLinks = R"(name = "c"
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

std::string why(const std::string& more) {
  return parse_cluster(kLinks + more, "c.toml").status().message();
}

TEST(ClusterNetwork, WithoutATableItIsOneSwitch) {
  const NetworkShape shape = parse_cluster(kLinks, "c.toml").value().network;
  EXPECT_EQ(shape.nics, 1);
  EXPECT_TRUE(shape.striped);
  EXPECT_TRUE(shape.levels.empty());
  EXPECT_TRUE(shape.torus.empty());
}

TEST(ClusterNetwork, ReadsNicsStagingAndLevels) {
  const NetworkShape shape =
      parse_cluster(kLinks +
                        "[network]\nnics = 2\nstriped = false\nnic_of = [0, 1, 0, 1]\n"
                        "staging_gbyte_per_s = 16\nbridge_gbyte_per_s = 10\n"
                        "[[network.level]]\nnodes = 16\noversubscription = 4\nlatency_us = 0.5\n"
                        "[[network.level]]\nnodes = 64\noversubscription = 1\n",
                    "c.toml")
          .value()
          .network;
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

TEST(ClusterNetwork, NamesTheLineThatIsWrong) {
  EXPECT_EQ(why("[network]\nnics = 5\n"),
            "c.toml, line 13: network.nics must be a number from 1 to 4");
  EXPECT_EQ(why("[network]\nstripd = true\n"),
            "c.toml, line 13: there is no key network.stripd, did you mean striped?");
  EXPECT_EQ(why("[network]\nstriped = 1\n"),
            "c.toml, line 13: network.striped must be true or false");
  EXPECT_EQ(why("[network]\nnics = 2\nstriped = false\nnic_of = [0, 1]\n"),
            "c.toml, line 15: network.nic_of must name the NIC of each of 4 devices, not of 2");
  EXPECT_EQ(why("[network]\nlevel = 3\n"),
            "c.toml, line 13: network.level must be tables: [[network.level]]");
  EXPECT_EQ(
      why("[[network.level]]\nnodes = 16\noversubscription = 0.5\n"),
      "c.toml, line 14: network.level.oversubscription must be a number from 1 to 1000000000");
  EXPECT_EQ(why("[[network.level]]\nnodes = 16\noversubscription = 1\n"
                "[[network.level]]\nnodes = 24\noversubscription = 1\n"),
            "c.toml, line 16: network.level.nodes must be a multiple of the 16 of the level below");
  EXPECT_EQ(
      why("[network]\ntorus = [4, 4]\n"),
      "c.toml, line 13: network.torus has one device at each point: ranks_per_node must be 1");
}

const std::string kSpeed =
    "[[speed]]\nframework = \"f\"\nprecision = \"f16\"\nmodel = \"resnet50\"\n";

TEST(DeviceSpeed, IsACurveOverTheBatch) {
  const Cluster cluster =
      parse_cluster(kLinks + kSpeed +
                        "images_per_s = [[10, 100], [20, 160], [40, 200]]\nstartup_s = 3\n"
                        "optimizer_s = 0.02\ninput_images_per_s = 500\n",
                    "c.toml")
          .value();
  const DeviceSpeed speed = find_speed(cluster.speeds, "", "f16", "resnet50", "c").value();
  EXPECT_DOUBLE_EQ(speed.startup_s, 3);
  EXPECT_DOUBLE_EQ(speed.input_images_per_s, 500);
  EXPECT_DOUBLE_EQ(speed.step_seconds(10), 0.1);
  EXPECT_DOUBLE_EQ(speed.pass_seconds(10), 0.08) << "the optimizer apart";
  EXPECT_DOUBLE_EQ(speed.step_seconds(20), 0.125);
  EXPECT_DOUBLE_EQ(speed.step_seconds(15), 0.1125) << "between two points a straight line";
  EXPECT_DOUBLE_EQ(speed.step_seconds(4), 0.085) << "below the first, 75 ms and 2.5 ms an image";
  EXPECT_DOUBLE_EQ(speed.step_seconds(60), 0.275) << "above the last";
  const DeviceSpeed one{.curve = {{32, 64}}};
  EXPECT_DOUBLE_EQ(one.step_seconds(48), 0.75) << "one point: in proportion";
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

TEST(DeviceSpeed, NamesTheLineThatIsWrong) {
  EXPECT_EQ(
      why(kSpeed + "images_per_s = [[2, 8], [1, 9]]\n"),
      "c.toml, line 16: speed.images_per_s must be pairs of numbers from 0.001 to 1000000000, "
      "the first of each rising: [[32, 157], [64, 160]]");
  EXPECT_EQ(why(kSpeed + "images_per_s = [[10, 10], [20, 30]]\n"),
            "c.toml, line 16: speed.images_per_s has 20 images done sooner than 10");
  EXPECT_EQ(why(kSpeed + "images_per_s = [[1, 10]]\noptimizer_s = 0.1\n"),
            "c.toml, line 17: speed.optimizer_s is longer than a whole step");
  EXPECT_EQ(why("[[speed]]\nframework = \"f\"\nprecision = \"f8\"\nmodel = \"resnet50\"\n"
                "images_per_s = [[1, 1]]\n"),
            "c.toml, line 14: speed.precision must be f32, f16, bf16");
  EXPECT_EQ(why("[[speed]]\nframework = \"f\"\nprecision = \"f16\"\nmodel = \"resnet51\"\n"
                "images_per_s = [[1, 1]]\n"),
            "c.toml, line 15: speed.model is wrong: no model is called \"resnet51\"; did you mean "
            "resnet50?");
}

}  // namespace
}  // namespace sluice::cluster
