#include "gradient/scales.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

// Far enough from the ends of f32 that products and quotients of both scales stay normal.
constexpr int kMostDoublings = 48;
constexpr int kLargestExponent = 11;

}  // namespace

void LossScale::update(double carried, bool overflow) {
  if (!options_.enabled || carried != value_) return;
  if (overflow) {
    value_ = std::max(value_ / 2, std::ldexp(1.0, -kMostDoublings));
    clean_steps_ = 0;
  } else if (++clean_steps_ >= options_.growth_steps) {
    value_ = std::min(value_ * 2, std::ldexp(1.0, kMostDoublings));
    clean_steps_ = 0;
  }
}

void WireScale::update(float carried, float largest) {
  if (largest <= 0) return;
  const int exponent = std::ilogb(carried) + kLargestExponent - std::ilogb(largest);
  value_ = std::ldexp(1.0F, std::clamp(exponent, -kMostDoublings, kMostDoublings));
}

void WireScale::lower(float carried) {
  if (carried == value_) value_ = std::max(value_ / 2, std::ldexp(1.0F, -kMostDoublings));
}

}  // namespace sluice
