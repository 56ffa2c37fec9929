#include "gradient/wire/wire.h"

#include <algorithm>
#include <cmath>

#include "engine/internal_collectives.h"

namespace sluice::gradient {
namespace {

constexpr float kAimedAt = 0x1p11F;

}  // namespace

WireType agreed_wire(Communicator& communicator, const GradientOptions& options) {
  if (options.wire == WireType::F32 || options.force_wire) return options.wire;
  const bool on_one_node =
      engine::same_everywhere(communicator, static_cast<std::uint64_t>(communicator.node()));
  return on_one_node ? WireType::F32 : options.wire;
}

void LossScale::update(double carried, bool overflow) {
  if (!options_.enabled || carried != value_) return;
  if (overflow) {
    value_ = std::max(value_ / 2, kSmallestScale);
    clean_steps_ = 0;
  } else if (++clean_steps_ >= options_.growth_steps) {
    value_ = std::min(value_ * 2, kLargestScale);
    clean_steps_ = 0;
  }
}

void WireScale::update(float carried, float largest) {
  if (largest <= 0) return;
  const double wanted = std::ldexp(double{carried} * kAimedAt, -std::ilogb(largest));
  value_ = static_cast<float>(std::clamp(wanted, kSmallestScale, kLargestScale));
}

void WireScale::lower(float carried) {
  if (carried == value_) value_ = std::max(value_ / 2, static_cast<float>(kSmallestScale));
}

}  // namespace sluice::gradient
