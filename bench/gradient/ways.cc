#include "bench/gradient/ways.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "sluice/status.h"

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
  const auto measured = [&](const Way& way) {
    return way.unlimited || names.empty() ||
           std::find(names.begin(), names.end(), way.name) != names.end();
  };
  std::vector<Way> ways = all_ways(theta);
  std::erase_if(ways, [&](const Way& way) { return !measured(way); });
  return ways;
}

std::vector<std::string> slow_ways() {
  std::vector<std::string> names;
  for (const Way& way : all_ways(1)) {
    if (!way.unlimited) names.push_back(way.name);
  }
  return names;
}

std::vector<StepLimit> limits_of(const std::vector<std::string>& texts,
                                 const std::vector<Way>& ways) {
  std::vector<StepLimit> limits;
  for (const std::string& text : texts) {
    const std::size_t first = text.find(':');
    const std::size_t second = text.find(':', first + 1);
    const auto way = std::find_if(ways.begin(), ways.end(), [&](const Way& each) {
      return each.name == text.substr(0, first);
    });
    const auto unit =
        std::find(kUnits.begin(), kUnits.end(), text.substr(first + 1, second - first - 1));
    const double times = second == std::string::npos ? 0 : std::atof(text.c_str() + second + 1);
    if (way == ways.end() || unit == kUnits.end() || !(times > 0))
      throw Error{Status{Code::InvalidArgument,
                         base::format("--most {}: give WAY:UNIT:TIMES, with a measured way and one "
                                      "of {}",
                                      text, base::join(kUnits, ", "))}};
    limits.push_back({.way = static_cast<std::size_t>(way - ways.begin()),
                      .unit = static_cast<std::size_t>(unit - kUnits.begin()),
                      .times = times});
  }
  return limits;
}

}  // namespace sluice::bench
