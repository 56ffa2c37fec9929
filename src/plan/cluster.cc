#include "plan/cluster.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "plan/embedded_clusters.h"

namespace sluice {
namespace {

// Reads one table: every key must be known, every number present and in its bounds.
class Table {
 public:
  Table(const toml::table& table, std::string path, const std::string& source)
      : table_{table}, path_{std::move(path)}, source_{source} {}

  double number(std::string_view key, double least, double most) {
    const toml::node* const node = find(key);
    if (node == nullptr) return least;
    const auto value = node->value<double>();
    if (!value || !(*value >= least && *value <= most)) {
      refuse(node->source(),
             fmt::format("{} must be a number from {} to {}", full(key), least, most));
    }
    return value.value_or(least);
  }

  std::string word(std::string_view key) {
    const toml::node* const node = find(key);
    if (node == nullptr) return {};
    const auto value = node->value<std::string>();
    if (!value) refuse(node->source(), fmt::format("{} must be a text in quotes", full(key)));
    return value.value_or("");
  }

  const toml::table* table(std::string_view key) {
    const toml::node* const node = find(key);
    if (node == nullptr) return nullptr;
    if (node->as_table() == nullptr)
      refuse(node->source(), fmt::format("{} must be a table", full(key)));
    return node->as_table();
  }

  // Call it last: a key that nothing asked for is a slip.
  Status finish() {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      const std::string_view nearest = nearest_name(key.str(), known_);
      refuse(key.source(),
             fmt::format("there is no key {}{}", full(key.str()),
                         nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest)));
    }
    return status_;
  }

 private:
  const toml::node* find(std::string_view key) {
    known_.push_back(key);
    const toml::node* const node = table_.get(key);
    if (node == nullptr) refuse(table_.source(), fmt::format("{} is missing", full(key)));
    return node;
  }
  std::string full(std::string_view key) const { return fmt::format("{}{}", path_, key); }
  void refuse(const toml::source_region& where, std::string_view what) {
    if (!status_.ok()) return;
    status_ = {Code::InvalidInput, fmt::format("{}, line {}: {}", source_, where.begin.line, what)};
  }

  const toml::table& table_;
  std::string path_;
  const std::string& source_;
  std::vector<std::string_view> known_;
  Status status_;
};

constexpr double kLeastRate = 1e-6;
constexpr double kMostRate = 1e9;
constexpr double kMostLatencyUs = 1e9;

}  // namespace

Topology Cluster::topology(int ranks) const {
  Topology topology;
  for (int left = ranks; left > 0; left -= ranks_per_node) {
    topology.nodes.push_back(std::min(left, ranks_per_node));
  }
  return topology;
}

std::vector<std::string_view> built_in_clusters() {
  std::vector<std::string_view> names;
  for (const EmbeddedCluster& cluster : embedded_clusters()) names.push_back(cluster.name);
  return names;
}

Result<Cluster> find_cluster(const std::string& name_or_path) {
  for (const EmbeddedCluster& cluster : embedded_clusters()) {
    if (cluster.name == name_or_path) return parse_cluster(cluster.toml, name_or_path + ".toml");
  }
  constexpr std::streamsize kMostBytes = 1 << 20;
  std::ifstream file{name_or_path, std::ios::binary};
  std::string text(static_cast<std::size_t>(kMostBytes) + 1, '\0');
  file.read(text.data(), kMostBytes + 1);
  if (!file.is_open() || file.bad()) {
    const auto names = built_in_clusters();
    const std::string_view nearest = nearest_name(name_or_path, names);
    return Status{
        Code::InvalidArgument,
        fmt::format("there is no cluster and no file {}: {}", quote(name_or_path),
                    nearest.empty() ? fmt::format("choose from {}", fmt::join(names, ", "))
                                    : fmt::format("did you mean {}?", nearest))};
  }
  if (file.gcount() > kMostBytes) {
    return Status{Code::InvalidInput,
                  fmt::format("{} is too long for a cluster file", name_or_path)};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_cluster(text, name_or_path);
}

Result<Cluster> parse_cluster(std::string_view toml_text, const std::string& source) {
  toml::table root;
  try {
    root = toml::parse(toml_text, source);
  } catch (const toml::parse_error& error) {
    return Status{Code::InvalidInput, fmt::format("{}, line {}: {}", source,
                                                  error.source().begin.line, error.description())};
  }
  Cluster cluster;
  Table top{root, "", source};
  cluster.name = top.word("name");
  cluster.ranks_per_node = static_cast<int>(top.number("ranks_per_node", 1, 1 << 16));
  const toml::table* const between = top.table("between");
  const toml::table* const inside = top.table("inside");
  const toml::table* const reduce = top.table("reduce");
  if (Status status = top.finish(); !status.ok()) return status;

  Table links{*between, "between.", source};
  constexpr double kBytesPerGbit = 1e9 / 8;
  cluster.constants.between.bandwidth_bytes_per_s =
      links.number("gbit_per_s", kLeastRate, kMostRate) * kBytesPerGbit *
      links.number("efficiency", kLeastRate, 1);
  cluster.constants.between.latency_s = links.number("latency_us", 0, kMostLatencyUs) * 1e-6;
  if (Status status = links.finish(); !status.ok()) return status;

  Table node{*inside, "inside.", source};
  cluster.constants.inside.bandwidth_bytes_per_s =
      node.number("gbyte_per_s", kLeastRate, kMostRate) * 1e9;
  cluster.constants.inside.latency_s = node.number("latency_us", 0, kMostLatencyUs) * 1e-6;
  if (Status status = node.finish(); !status.ok()) return status;

  Table adding{*reduce, "reduce.", source};
  cluster.constants.reduce_s_per_byte =
      1 / (adding.number("gbyte_per_s", kLeastRate, kMostRate) * 1e9);
  if (Status status = adding.finish(); !status.ok()) return status;
  return cluster;
}

}  // namespace sluice
