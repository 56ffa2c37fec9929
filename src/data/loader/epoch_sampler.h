// epoch_sampler.h - which samples a rank sees at which step of an epoch, where every epoch is
// alike.
//
// Training: all samples are shuffled once an epoch, the same at every rank; a step takes the next
// ranks * batch of them, rank r the r-th `batch`. So a step's samples depend on the global batch
// alone, not on how many ranks share it, and no two ranks see the same sample. What does not fill a
// last step is left out, other samples every epoch.
//
// Evaluation: all samples once, in order; the last batches may be short or empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::data {

struct EpochSamplerOptions {
  std::size_t samples = 0;
  std::size_t batch = 1;  // a rank's
  int ranks = 1;
  int rank = 0;
  std::uint64_t seed = 0;
  bool evaluation = false;
};

class EpochSampler {
 public:
  // Ready for epoch 0. REQUIRES: batch, ranks > 0; 0 <= rank < ranks.
  explicit EpochSampler(const EpochSamplerOptions& options);

  // Steps of an epoch, the same at every rank.
  std::size_t steps() const;
  void start_epoch(std::uint64_t epoch);
  // REQUIRES: step < steps().
  std::span<const std::size_t> batch(std::size_t step) const;

 private:
  EpochSamplerOptions options_;
  std::vector<std::size_t> order_;
};

}  // namespace sluice::data
