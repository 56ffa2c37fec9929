#include "cluster/cluster.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"
#include "base/toml.h"

namespace sluice::cluster {
namespace {

constexpr double kLeastRate = 1e-6;
constexpr double kMostRate = 1e9;
constexpr double kMostLatencyUs = 1e9;
constexpr double kUnlimitedBytes = 1e18;
constexpr double kMostValue = 1e9;
constexpr int kMostNodes = 1 << 16;

// The gap of a link whose file names none, as a part of its latency: measured over TCP and in
// shared memory (docs/simulation.md).
constexpr double kGapPartBetween = 0.07;
constexpr double kGapPartInside = 0.4;

double read_gap_s(base::TomlTable& link, double latency_s, double part) {
  return link.optional_number("gap_us", part * latency_s * 1e6, 0, kMostLatencyUs) * 1e-6;
}

Status read_level(const toml::table& table, const std::string& source, NetworkShape& shape) {
  base::TomlTable level{table, "network.level.", source};
  const SwitchLevel read{
      .nodes = static_cast<int>(level.number("nodes", 1, kMostNodes)),
      .oversubscription = level.number("oversubscription", 1, kMostValue),
      .latency_s = level.optional_number("latency_us", 0, 0, kMostValue) * 1e-6,
  };
  if (!shape.levels.empty() && read.nodes % shape.levels.back().nodes != 0) {
    level.refuse("nodes", base::format("must be a multiple of the {} nodes of the level below",
                                       shape.levels.back().nodes));
  }
  shape.levels.push_back(read);
  return level.finish();
}

// Reads [network].
Result<NetworkShape> read_network(const toml::table& table, int ranks_per_node,
                                  const std::string& source) {
  base::TomlTable network{table, "network.", source};
  NetworkShape shape;
  shape.nics = static_cast<int>(network.optional_number("nics", 1, 1, ranks_per_node));
  shape.striped = network.optional_flag("striped", true);
  shape.nic_of = network.optional_integers("nic_of", 0, shape.nics - 1);
  if (!shape.nic_of.empty() && static_cast<int>(shape.nic_of.size()) != ranks_per_node) {
    network.refuse("nic_of", base::format("must name the NIC of each of the {} devices, not of {}",
                                          ranks_per_node, shape.nic_of.size()));
  }
  if (!shape.nic_of.empty() && shape.striped)
    network.refuse("nic_of",
                   "has no effect if messages are striped over all NICs: set striped = false");
  shape.staging_bytes_per_s =
      network.optional_number("staging_gbyte_per_s", 0, 1e-6, kMostValue) * 1e9;
  shape.bridge_bytes_per_s =
      network.optional_number("bridge_gbyte_per_s", 0, 1e-6, kMostValue) * 1e9;
  shape.tree_latency_s = network.optional_number("tree_latency_us", 0, 0, kMostValue) * 1e-6;
  shape.torus = network.optional_integers("torus", 1, kMostNodes);
  shape.hop_latency_s = network.optional_number("hop_latency_us", 0, 0, kMostValue) * 1e-6;
  const std::vector<const toml::table*> levels = network.optional_tables("level");
  if (!shape.torus.empty() && !levels.empty())
    network.refuse("torus", "excludes switches: remove torus or the levels");
  if (!shape.torus.empty() && ranks_per_node != 1)
    network.refuse("torus", "has one device at each point: set ranks_per_node to 1");
  if (Status status = network.finish(); !status.ok()) return status;
  for (const toml::table* const level : levels) {
    if (Status status = read_level(*level, source, shape); !status.ok()) return status;
  }
  return shape;
}

// Reads one [[speed]].
Result<DeviceSpeed> read_speed(const toml::table& table, const std::string& source) {
  constexpr double kMostSeconds = 1e6;
  constexpr std::array<std::string_view, 3> kPrecisions{"f32", "f16", "bf16"};
  base::TomlTable read{table, "speed.", source};
  DeviceSpeed speed;
  speed.framework = read.text("framework");
  speed.precision = read.text("precision");
  if (std::find(kPrecisions.begin(), kPrecisions.end(), speed.precision) == kPrecisions.end())
    read.refuse("precision", base::format("must be one of {}", base::join(kPrecisions, ", ")));
  speed.model = read.text("model");
  if (const Status known = check_model_name(speed.model); !known.ok())
    read.refuse("model", base::format("is wrong: {}", known.message()));
  for (const auto& [batch, images_per_s] : read.pairs("images_per_s", 1e-3, kMostValue))
    speed.curve.push_back({batch, images_per_s});
  speed.optimizer_s = read.optional_number("optimizer_s", 0, 0, kMostSeconds);
  speed.input_images_per_s = read.optional_number("input_images_per_s", 0, 1e-3, kMostValue);
  speed.startup_s = read.optional_number("startup_s", 0, 0, kMostSeconds);
  speed.evaluation_s = read.optional_number("evaluation_s", 0, 0, kMostSeconds);
  speed.epoch_s = read.optional_number("epoch_s", 0, 0, kMostSeconds);
  speed.first_epochs_s = read.optional_number("first_epochs_s", 0, 0, kMostSeconds);
  if (!speed.curve.empty() && speed.pass_seconds(speed.curve.front().batch) <= 0)
    read.refuse("optimizer_s", "must be shorter than a step");
  for (std::size_t i = 1; i < speed.curve.size(); ++i) {
    const SpeedPoint& a = speed.curve[i - 1];
    const SpeedPoint& b = speed.curve[i];
    if (a.batch / a.images_per_s >= b.batch / b.images_per_s)
      read.refuse("images_per_s", base::format("computes a batch of {} faster than a batch of {}",
                                               b.batch, a.batch));
  }
  if (Status status = read.finish(); !status.ok()) return status;
  return speed;
}

}  // namespace

Topology Cluster::topology(int ranks) const {
  Topology topology;
  for (int left = ranks; left > 0; left -= ranks_per_node) {
    topology.nodes.push_back(std::min(left, ranks_per_node));
  }
  return topology;
}

int Cluster::switch_of(std::string_view host, std::string_view address) const {
  const auto behind = std::find_if(switches.begin(), switches.end(), [&](const auto& hosts) {
    return std::find(hosts.begin(), hosts.end(), host) != hosts.end() ||
           std::find(hosts.begin(), hosts.end(), address) != hosts.end();
  });
  return static_cast<int>(behind - switches.begin());
}

std::vector<std::string_view> built_in_clusters() {
  std::vector<std::string_view> names;
  for (const base::EmbeddedFile& cluster : base::embedded_clusters()) names.push_back(cluster.name);
  return names;
}

Result<Cluster> find_cluster(const std::string& name_or_path) {
  const Result<base::TomlText> found =
      base::find_toml("cluster", name_or_path, base::embedded_clusters());
  if (!found.ok()) return found.status();
  return parse_cluster(found.value().text, found.value().source);
}

Result<Cluster> parse_cluster(std::string_view toml_text, const std::string& source) {
  const Result<toml::table> root = base::parse_toml(toml_text, source);
  if (!root.ok()) return root.status();
  Cluster cluster;
  base::TomlTable top{root.value(), "", source};
  cluster.name = top.text("name");
  cluster.ranks_per_node = static_cast<int>(top.number("ranks_per_node", 1, 1 << 16));
  const toml::table* const between = top.table("between");
  const toml::table* const inside = top.table("inside");
  const toml::table* const reduce = top.table("reduce");
  const toml::table* const measured = top.optional_table("measured");
  const toml::table* const network = top.optional_table("network");
  const std::vector<const toml::table*> speeds = top.optional_tables("speed");
  cluster.device = top.optional_text("device");
  cluster.steady = top.optional_flag("steady", false);
  cluster.switches = top.optional_lists("switches");
  if (Status status = top.finish(); !status.ok()) return status;

  base::TomlTable links{*between, "between.", source};
  constexpr double kBytesPerGbit = 1e9 / 8;
  cluster.constants.between.bandwidth_bytes_per_s =
      links.number("gbit_per_s", kLeastRate, kMostRate) * kBytesPerGbit;
  cluster.between_efficiency = links.number("efficiency", kLeastRate, 1);
  cluster.constants.between.bandwidth_bytes_per_s *= cluster.between_efficiency;
  cluster.constants.between.latency_s = links.number("latency_us", 0, kMostLatencyUs) * 1e-6;
  cluster.constants.between.gap_s =
      read_gap_s(links, cluster.constants.between.latency_s, kGapPartBetween);
  if (Status status = links.finish(); !status.ok()) return status;

  const auto read_node_link = [&](const toml::table& table, const std::string& path, Link& link,
                                  std::int64_t* most_bytes = nullptr) {
    base::TomlTable node{table, path, source};
    link.bandwidth_bytes_per_s = node.number("gbyte_per_s", kLeastRate, kMostRate) * 1e9;
    link.latency_s = node.number("latency_us", 0, kMostLatencyUs) * 1e-6;
    if (most_bytes == nullptr) link.gap_s = read_gap_s(node, link.latency_s, kGapPartInside);
    if (most_bytes != nullptr && table.contains("most_bytes"))
      *most_bytes = static_cast<std::int64_t>(node.number("most_bytes", 0, kUnlimitedBytes));
    return node.finish();
  };
  if (Status status = read_node_link(*inside, "inside.", cluster.constants.inside); !status.ok())
    return status;

  base::TomlTable adding{*reduce, "reduce.", source};
  cluster.constants.reduce_s_per_byte =
      1 / (adding.number("gbyte_per_s", kLeastRate, kMostRate) * 1e9);
  if (Status status = adding.finish(); !status.ok()) return status;
  if (network != nullptr) {
    Result<NetworkShape> shape = read_network(*network, cluster.ranks_per_node, source);
    if (!shape.ok()) return shape.status();
    cluster.constants.network = std::move(shape).value();
  }
  for (const toml::table* const speed : speeds) {
    Result<DeviceSpeed> read = read_speed(*speed, source);
    if (!read.ok()) return read.status();
    cluster.speeds.push_back(std::move(read).value());
  }
  if (measured == nullptr) return cluster;

  base::TomlTable algorithms{*measured, "measured.", source};
  for (const auto& [key, node] : *measured) {
    const toml::table* const table = algorithms.table(key.str());
    if (table == nullptr) break;
    MeasuredLink& link = cluster.constants.measured.emplace_back();
    link.algorithm = key.str();
    const std::string path = base::format("measured.{}.", key.str());
    if (Status status = read_node_link(*table, path, link.inside, &link.most_bytes); !status.ok()) {
      return status;
    }
  }
  if (Status status = algorithms.finish(); !status.ok()) return status;
  return cluster;
}

namespace {

std::string show_network(const NetworkShape& network) {
  std::string text = base::format(
      "\n[network]\nnics = {}\nstriped = {}\nnic_of = [{}]\ntorus = [{}]\n", network.nics,
      network.striped, base::join(network.nic_of, ", "), base::join(network.torus, ", "));
  const auto unless_zero = [&](std::string_view key, double value) {
    if (value > 0) text += base::format("{} = {}\n", key, value);
  };
  unless_zero("staging_gbyte_per_s", network.staging_bytes_per_s / 1e9);
  unless_zero("bridge_gbyte_per_s", network.bridge_bytes_per_s / 1e9);
  unless_zero("tree_latency_us", network.tree_latency_s * 1e6);
  unless_zero("hop_latency_us", network.hop_latency_s * 1e6);
  for (const SwitchLevel& level : network.levels) {
    text +=
        base::format("\n[[network.level]]\nnodes = {}\noversubscription = {}\nlatency_us = {}\n",
                     level.nodes, level.oversubscription, level.latency_s * 1e6);
  }
  return text;
}

}  // namespace

std::string show_cluster(const Cluster& cluster) {
  const auto& [inside, between, reduce_s_per_byte, measured, network] = cluster.constants;
  const auto node_link = [](std::string_view name, const Link& link) {
    return base::format("\n[{}]\ngbyte_per_s = {}\nlatency_us = {}\n", name,
                        link.bandwidth_bytes_per_s / 1e9, link.latency_s * 1e6);
  };
  const auto gap = [](const Link& link) { return base::format("gap_us = {}\n", link.gap_s * 1e6); };
  std::string text =
      base::format("name = \"{}\"\nranks_per_node = {}\n", cluster.name, cluster.ranks_per_node);
  if (!cluster.switches.empty()) {
    text += "switches = [";
    for (const auto& hosts : cluster.switches)
      text += base::format("[\"{}\"],", base::join(hosts, "\", \""));
    text += "]\n";
  }
  text += base::format("\n[between]\ngbit_per_s = {}\nefficiency = 1\nlatency_us = {}\n",
                       between.bandwidth_bytes_per_s * 8 / 1e9, between.latency_s * 1e6);
  text += gap(between) + node_link("inside", inside) + gap(inside);
  text += base::format("\n[reduce]\ngbyte_per_s = {}\n", 1 / reduce_s_per_byte / 1e9);
  for (const MeasuredLink& link : measured) {
    text += node_link(base::format("measured.\"{}\"", link.algorithm), link.inside);
    if (link.most_bytes < static_cast<std::int64_t>(kUnlimitedBytes))
      text += base::format("most_bytes = {}\n", link.most_bytes);
  }
  if (measured.empty()) text += show_network(network);
  return text;
}

}  // namespace sluice::cluster
