// ways.h - how a contender's gradients travel, and over which links.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sluice/gradients.h"

namespace sluice::bench {

struct Way {
  std::string name;
  std::optional<GradientOptions> options;  // none: gradients stay where they are
  bool unlimited = false;
  bool exact = false;  // f32, and not a step behind: ends where `plain` does
};

// The first of ways_of(); `plain` only where it takes part.
constexpr std::size_t kAloneWay = 0;
constexpr std::size_t kUnlimitedWay = 1;
constexpr std::size_t kPlainWay = 2;

// Those over unlimited links, and of the others those named; none named: all.
std::vector<Way> ways_of(std::size_t theta, const std::vector<std::string>& names);

// The names of those that travel over slow links.
std::vector<std::string> slow_ways();

}  // namespace sluice::bench
