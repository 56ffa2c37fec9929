// random.h - random numbers that are the same on every machine and with every standard library.
//
// Seed it with mixed({seed, epoch, sample}) and the like: what is random is then a function of what
// it is for, whichever rank draws it and in whichever order.
#pragma once

#include <cstdint>

#include "base/mix.h"

namespace sluice::base {

// splitmix64.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_{seed} {}

  constexpr std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBULL;
    return bits ^ (bits >> 31U);
  }

  // Each of 0 .. bound - 1 alike. REQUIRES: bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t uneven = (0 - bound) % bound;  // 2^64 mod bound
    while (true) {
      const std::uint64_t bits = next();
      if (bits >= uneven) return bits % bound;
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace sluice::base
