#include "simulate/scenario.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/format.h"
#include "base/text.h"

namespace sluice::simulate {
namespace {

constexpr double kMost = 1e9;
constexpr double kLeast = 1e-6;

struct Key {
  std::string_view name;
  double least;
  double most;
  void (*set)(ClusterScenario& scenario, double value);
  bool whole = false;
};

void set_levels(ClusterScenario& scenario, double oversubscription) {
  for (SwitchLevel& level : scenario.cluster.constants.network.levels)
    level.oversubscription = oversubscription;
}

void set_compute_speed(ClusterScenario& scenario, double times) {
  for (cluster::DeviceSpeed& speed : scenario.cluster.speeds) {
    for (cluster::SpeedPoint& point : speed.curve) point.images_per_s *= times;
    speed.optimizer_s /= times;
  }
}

void set_input(ClusterScenario& scenario, double images_per_s) {
  for (cluster::DeviceSpeed& speed : scenario.cluster.speeds)
    speed.input_images_per_s = images_per_s;
}

void set_spread(ClusterScenario& scenario, double Spread::*field, double value) {
  Spread spread = spread_of(scenario);
  spread.*field = value;
  scenario.spread = spread;
}

constexpr std::array kKeys{
    Key{"between.gbit_per_s", kLeast, kMost,
        [](ClusterScenario& s, double v) {
          s.cluster.constants.between.bandwidth_bytes_per_s =
              v * 1e9 / 8 * s.cluster.between_efficiency;
        }},
    Key{"between.efficiency", kLeast, 1,
        [](ClusterScenario& s, double v) {
          s.cluster.constants.between.bandwidth_bytes_per_s *= v / s.cluster.between_efficiency;
          s.cluster.between_efficiency = v;
        }},
    Key{"between.latency_us", 0, kMost,
        [](ClusterScenario& s, double v) { s.cluster.constants.between.latency_s = v * 1e-6; }},
    Key{"between.gap_us", 0, kMost,
        [](ClusterScenario& s, double v) { s.cluster.constants.between.gap_s = v * 1e-6; }},
    Key{"inside.gbyte_per_s", kLeast, kMost,
        [](ClusterScenario& s, double v) {
          s.cluster.constants.inside.bandwidth_bytes_per_s = v * 1e9;
        }},
    Key{"inside.latency_us", 0, kMost,
        [](ClusterScenario& s, double v) { s.cluster.constants.inside.latency_s = v * 1e-6; }},
    Key{"inside.gap_us", 0, kMost,
        [](ClusterScenario& s, double v) { s.cluster.constants.inside.gap_s = v * 1e-6; }},
    Key{"reduce.gbyte_per_s", kLeast, kMost,
        [](ClusterScenario& s, double v) {
          s.cluster.constants.reduce_s_per_byte = 1 / (v * 1e9);
        }},
    Key{"oversubscription", 1, kMost, set_levels},
    Key{"striped", 0, 1,
        [](ClusterScenario& s, double v) { s.cluster.constants.network.striped = v != 0; }},
    Key{"staging_gbyte_per_s", 0, kMost,
        [](ClusterScenario& s, double v) {
          s.cluster.constants.network.staging_bytes_per_s = v * 1e9;
        }},
    Key{"background", 0, 1, [](ClusterScenario& s, double v) { s.conditions.background = v; }},
    Key{"slow_node", 0, kMost,
        [](ClusterScenario& s, double v) { s.conditions.slow_node = static_cast<int>(v); }, true},
    Key{"slow_part", 0, 1, [](ClusterScenario& s, double v) { s.conditions.slow_part = v; }},
    Key{"grid_rows", 1, kMost,
        [](ClusterScenario& s, double v) { s.grid_rows = static_cast<int>(v); }, true},
    Key{"compute_speed", kLeast, kMost, set_compute_speed},
    Key{"input_images_per_s", kLeast, kMost, set_input},
    Key{"straggler_ms", 0, kMost,
        [](ClusterScenario& s, double v) { set_spread(s, &Spread::fixed_s, v * 1e-3); }},
    Key{"straggler_part", 0, 1,
        [](ClusterScenario& s, double v) { set_spread(s, &Spread::part, v); }},
    Key{"jitter_us", 0, kMost, [](ClusterScenario& s, double v) { s.jitter_s = v * 1e-6; }},
    Key{"jitter_seed", 0, kMost,
        [](ClusterScenario& s, double v) { s.seed = static_cast<std::uint64_t>(v); }, true},
};

Status set(ClusterScenario& scenario, const Key& key, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= key.least) ||
      !(value <= key.most) || (key.whole && value != std::floor(value))) {
    return {
        Code::InvalidArgument,
        base::format("--what-if {}: {} must be a {}number from {} to {}, not {}", key.name,
                     key.name, key.whole ? "whole " : "", key.least, key.most, base::quote(text))};
  }
  key.set(scenario, value);
  return {};
}

}  // namespace

Spread spread_of(const ClusterScenario& scenario) {
  return scenario.spread.value_or(scenario.cluster.steady ? kSteadySpread : kGpuSpread);
}

Result<std::vector<int>> grid_of(const ClusterScenario& scenario, int ranks) {
  const int rows = scenario.grid_rows;
  if (rows == 0) return std::vector<int>{};
  if (ranks % rows != 0) {
    return Status{
        Code::InvalidArgument,
        base::format("{} ranks do not fill {} rows evenly: choose another grid_rows", ranks, rows)};
  }
  return std::vector<int>(static_cast<std::size_t>(rows), ranks / rows);
}

std::vector<std::string_view> what_if_keys() {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) names.push_back(key.name);
  return names;
}

Status apply(ClusterScenario& scenario, const std::vector<std::string>& settings,
             bool with_recipe) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      return {Code::InvalidArgument,
              base::format("--what-if {} must be key=value, like between.gbit_per_s=400",
                           base::quote(setting))};
    }
    const std::string_view name = std::string_view{setting}.substr(0, equals);
    const std::string_view value = std::string_view{setting}.substr(equals + 1);
    const auto* const found =
        std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& key) { return key.name == name; });
    if (found != kKeys.end()) {
      if (Status status = set(scenario, *found, value); !status.ok()) return status;
    } else if (with_recipe) {
      scenario.recipe.push_back(setting);
    } else {
      const std::vector<std::string_view> names = what_if_keys();
      const std::string_view nearest = base::nearest_name(name, names);
      return {Code::InvalidArgument,
              base::format("--what-if {}: there is no such key without a recipe; {}", setting,
                           nearest.empty() ? base::format("choose from {}", base::join(names, ", "))
                                           : base::format("did you mean {}?", nearest))};
    }
  }
  return {};
}

}  // namespace sluice::simulate
