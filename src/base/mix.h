// mix.h - some numbers as one, such that nearby ones do not collide.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace sluice::base {

// Mixed as in splitmix64.
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
