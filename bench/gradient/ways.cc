#include "bench/gradient/ways.h"

#include <algorithm>

namespace sluice::bench {
namespace {

std::vector<Way> all_ways(std::size_t theta) {
  constexpr std::size_t kEverything = std::size_t{1} << 40U;
  const auto f16 = WireType::F16;
  return {
      {"alone", std::nullopt, true, false},
      {"unlimited", GradientOptions{.theta = kEverything}, true, true},
      {"plain", GradientOptions{.theta = kEverything}, false, true},
      {"lazy", GradientOptions{.theta = theta}, false, true},
      {"lazy f16", GradientOptions{.theta = theta, .wire = f16}, false, false},
      {"double", GradientOptions{.theta = theta, .double_buffering = true}, false, false},
      {"double f16", GradientOptions{.theta = theta, .wire = f16, .double_buffering = true}, false,
       false},
      {"sparse 85%", GradientOptions{.theta = theta, .sparse = {.sparsity = 0.85}}, false, false},
  };
}

}  // namespace

std::vector<Way> ways_of(std::size_t theta, const std::vector<std::string>& names) {
  const auto takes_part = [&](const Way& way) {
    return way.unlimited || names.empty() ||
           std::find(names.begin(), names.end(), way.name) != names.end();
  };
  std::vector<Way> ways = all_ways(theta);
  std::erase_if(ways, [&](const Way& way) { return !takes_part(way); });
  return ways;
}

std::vector<std::string> slow_ways() {
  std::vector<std::string> names;
  for (const Way& way : all_ways(1)) {
    if (!way.unlimited) names.push_back(way.name);
  }
  return names;
}

}  // namespace sluice::bench
