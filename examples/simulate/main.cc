// Simulates a training on 256 and on 1024 ranks, and finds the fastest all_reduce algorithm.
#include <cstdio>

#include "sluice/analysis/simulate.h"

int main() {
  for (const int ranks : {256, 1024}) {
    const auto training = sluice::simulate_training(
        {.cluster = "mn-1", .recipe = "pfn-15min", .ranks = ranks, .what_if = {"wire=f16"}});
    if (!training.ok()) {
      std::fputs(training.status().message().c_str(), stderr);
      return 1;
    }
    std::printf("%d ranks: %.0f images/s, efficiency %.2f\n", ranks, training.value().images_per_s,
                training.value().efficiency);
  }
  const auto times =
      sluice::simulate_all_reduce({.cluster = "mn-1", .ranks = 64, .bytes = 1 << 20});
  const auto& fastest = times.value().front();
  std::printf("fastest: %s, %.2f ms\n", fastest.algorithm.c_str(), 1e3 * fastest.seconds);
}
