// ways.h - the ways to send gradients that step_times compares, and limits on their step times.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/torch/gradient_options.h"

namespace sluice::bench {

struct Way {
  std::string name;
  std::optional<GradientOptions> options;  // none: no communication
  bool unlimited = false;                  // over links that never limit
  bool exact = false;                      // f32 without double buffering: same weights as `plain`
};

// Positions in the result of ways_of(); `plain` only if it is measured.
constexpr std::size_t kAloneWay = 0;
constexpr std::size_t kUnlimitedWay = 1;
constexpr std::size_t kPlainWay = 2;

// The ways over unlimited links, and the named ones of the others; no names: all.
std::vector<Way> ways_of(std::size_t theta, const std::vector<std::string>& names);

// The names of the ways over slow links.
std::vector<std::string> slow_ways();

// Reference times: computation without communication; the longer of that and an all-reduce alone; a
// step over unlimited links; the earliest possible end if the link sends gradients once they are
// ready.
constexpr std::array<std::string_view, 4> kUnits{"alone", "longer", "unlimited", "bound"};
constexpr std::size_t kUnlimitedUnit = 2;

// Medians over all rounds. Each ratio is to a reference time of the same round.
struct StepTime {
  double s = 0;
  std::array<double, kUnits.size()> ratios{};
};

// A step of `way` may take at most `times` the reference time `unit`.
struct StepLimit {
  std::size_t way = 0;
  std::size_t unit = 0;
  double times = 0;
};

// Parses texts WAY:UNIT:TIMES. Throws Error for another form or a way that is not measured.
std::vector<StepLimit> limits_of(const std::vector<std::string>& texts,
                                 const std::vector<Way>& ways);

}  // namespace sluice::bench
