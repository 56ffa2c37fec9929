// bits.h - powers of two, as the algorithms need them.
#pragma once

#include <bit>

namespace sluice::base {

// REQUIRES: n >= 1 in all of these.
constexpr bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }
constexpr int floor_log2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
constexpr int ceil_log2(int n) { return is_power_of_two(n) ? floor_log2(n) : floor_log2(n) + 1; }

}  // namespace sluice::base
