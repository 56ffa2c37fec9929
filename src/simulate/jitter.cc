#include "simulate/jitter.h"

#include "base/random.h"

namespace sluice::simulate {

std::vector<double> lateness(double most_s, std::uint64_t seed, int ranks) {
  constexpr double kBits = 1ULL << 53U;
  std::vector<double> late;
  for (int rank = 0; rank < ranks; ++rank) {
    base::Random random{base::mixed({seed, static_cast<std::uint64_t>(rank)})};
    late.push_back(most_s * static_cast<double>(random.next() >> 11U) / kBits);
  }
  return late;
}

}  // namespace sluice::simulate
