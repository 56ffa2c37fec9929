#include "cluster/cluster_network.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/toml.h"

namespace sluice::cluster {
namespace {

constexpr double kMost = 1e9;
constexpr int kMostNodes = 1 << 16;

Status read_level(const toml::table& table, const std::string& source, NetworkShape& shape) {
  base::TomlTable level{table, "network.level.", source};
  const SwitchLevel read{
      .nodes = static_cast<int>(level.number("nodes", 1, kMostNodes)),
      .oversubscription = level.number("oversubscription", 1, kMost),
      .latency_s = level.optional_number("latency_us", 0, 0, kMost) * 1e-6,
  };
  if (!shape.levels.empty() && read.nodes % shape.levels.back().nodes != 0) {
    level.refuse("nodes", base::format("must be a multiple of the {} of the level below",
                                       shape.levels.back().nodes));
  }
  shape.levels.push_back(read);
  return level.finish();
}

}  // namespace

Result<NetworkShape> read_network(const toml::table& table, int ranks_per_node,
                                  const std::string& source) {
  base::TomlTable network{table, "network.", source};
  NetworkShape shape;
  shape.nics = static_cast<int>(network.optional_number("nics", 1, 1, ranks_per_node));
  shape.striped = network.optional_flag("striped", true);
  shape.nic_of = network.optional_wholes("nic_of", 0, shape.nics - 1);
  if (!shape.nic_of.empty() && static_cast<int>(shape.nic_of.size()) != ranks_per_node) {
    network.refuse("nic_of", base::format("must name the NIC of each of {} devices, not of {}",
                                          ranks_per_node, shape.nic_of.size()));
  }
  if (!shape.nic_of.empty() && shape.striped)
    network.refuse("nic_of", "says nothing where messages are striped over all NICs");
  shape.staging_bytes_per_s = network.optional_number("staging_gbyte_per_s", 0, 1e-6, kMost) * 1e9;
  shape.bridge_bytes_per_s = network.optional_number("bridge_gbyte_per_s", 0, 1e-6, kMost) * 1e9;
  shape.tree_latency_s = network.optional_number("tree_latency_us", 0, 0, kMost) * 1e-6;
  shape.torus = network.optional_wholes("torus", 1, kMostNodes);
  shape.hop_latency_s = network.optional_number("hop_latency_us", 0, 0, kMost) * 1e-6;
  const std::vector<const toml::table*> levels = network.optional_tables("level");
  if (!shape.torus.empty() && !levels.empty())
    network.refuse("torus", "goes without switches: leave out one of them");
  if (!shape.torus.empty() && ranks_per_node != 1)
    network.refuse("torus", "has one device at each point: ranks_per_node must be 1");
  if (Status status = network.finish(); !status.ok()) return status;
  for (const toml::table* const level : levels) {
    if (Status status = read_level(*level, source, shape); !status.ok()) return status;
  }
  return shape;
}

Result<DeviceSpeed> read_speed(const toml::table& table, const std::string& source) {
  constexpr double kMostSeconds = 1e6;
  constexpr std::array<std::string_view, 3> kPrecisions{"f32", "f16", "bf16"};
  base::TomlTable read{table, "speed.", source};
  DeviceSpeed speed;
  speed.framework = read.word("framework");
  speed.precision = read.word("precision");
  if (std::find(kPrecisions.begin(), kPrecisions.end(), speed.precision) == kPrecisions.end())
    read.refuse("precision", base::format("must be {}", base::join(kPrecisions, ", ")));
  speed.model = read.word("model");
  if (const Status known = check_model_name(speed.model); !known.ok())
    read.refuse("model", base::format("is wrong: {}", known.message()));
  for (const auto& [batch, images_per_s] : read.pairs("images_per_s", 1e-3, kMost))
    speed.curve.push_back({batch, images_per_s});
  speed.optimizer_s = read.optional_number("optimizer_s", 0, 0, kMostSeconds);
  speed.input_images_per_s = read.optional_number("input_images_per_s", 0, 1e-3, kMost);
  speed.startup_s = read.optional_number("startup_s", 0, 0, kMostSeconds);
  speed.evaluation_s = read.optional_number("evaluation_s", 0, 0, kMostSeconds);
  speed.epoch_s = read.optional_number("epoch_s", 0, 0, kMostSeconds);
  speed.first_epochs_s = read.optional_number("first_epochs_s", 0, 0, kMostSeconds);
  if (!speed.curve.empty() && speed.pass_seconds(speed.curve.front().batch) <= 0)
    read.refuse("optimizer_s", "is longer than a whole step");
  for (std::size_t i = 1; i < speed.curve.size(); ++i) {
    const SpeedPoint& a = speed.curve[i - 1];
    const SpeedPoint& b = speed.curve[i];
    if (a.batch / a.images_per_s >= b.batch / b.images_per_s)
      read.refuse("images_per_s",
                  base::format("has {} images done sooner than {}", b.batch, a.batch));
  }
  if (Status status = read.finish(); !status.ok()) return status;
  return speed;
}

}  // namespace sluice::cluster
