// learning_rate_mode.h - where a momentum optimizer applies the learning rate.
#pragma once

#include <cstdint>

namespace sluice {

enum class LearningRateMode : std::uint8_t {
  Outside,  // u = m u + d, w -= lr u
  Folded,   // u = m u + lr d, w -= u: what was added before a change of the rate keeps the old one
};

}  // namespace sluice
