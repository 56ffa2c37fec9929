// bars.h - what steps are compared with, and how long they may take.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gradient/ways.h"

namespace sluice::bench {

// Computation alone, that or an all-reduce alone if it is longer, a step over unlimited links, and
// the earliest end of sending what is ready at the link's rate.
constexpr std::array<std::string_view, 4> kUnits{"alone", "longer", "unlimited", "bound"};
constexpr std::size_t kUnlimitedUnit = 2;

// Of a way: a median of all rounds, as are its ratios, each to the same round's.
struct StepTime {
  double s = 0;
  std::array<double, kUnits.size()> of{};
};

// So many units a step of a way may take.
struct Bar {
  std::size_t way = 0;
  std::size_t unit = 0;
  double times = 0;
};

// Each text is WAY:UNIT:TIMES; throws Error if it is not, or of a way that does not take part.
std::vector<Bar> bars_of(const std::vector<std::string>& texts, const std::vector<Way>& ways);

}  // namespace sluice::bench
