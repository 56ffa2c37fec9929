// random.h - random numbers that are the same on every machine and with every standard library.
//
// Seed a generator for each purpose, for example with mixed({seed, epoch, sample}). Then a draw
// depends neither on the rank that makes it nor on the order of draws.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace sluice::base {

// The splitmix64 generator.
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

  // Uniform in 0 .. bound - 1. REQUIRES: bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    // The lowest 2^64 mod bound values are rejected; the others give each result equally often.
    const std::uint64_t rejected = (0 - bound) % bound;
    while (true) {
      const std::uint64_t bits = next();
      if (bits >= rejected) return bits % bound;
    }
  }

 private:
  std::uint64_t state_;
};

// Hashes numbers into one (with the finaliser of splitmix64), so that similar inputs do not
// collide.
constexpr std::uint64_t mixed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t hash = 0;
  for (const std::uint64_t part : parts) {
    hash = (hash ^ part) + 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBULL;
    hash ^= hash >> 31U;
  }
  return hash;
}

}  // namespace sluice::base
