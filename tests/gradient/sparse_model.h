// sparse_model.h - computes the sparse steps of all ranks naively.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/gradient/model.h"

namespace sluice::gradient {

// Large and small matrices, some smaller than a chunk; between them vectors and other types.
ToyModel sparse_model();

// A weight of a gradient, the same at all ranks.
float weight_at(std::size_t i, std::size_t element, int step);
std::vector<std::vector<float>> weights_at(const ToyModel& model, int step);

class NaiveSparse {
 public:
  NaiveSparse(const ToyModel& model, int ranks, const GradientOptions& options, float decay);

  struct StepResult {
    bool sparse = false;
    std::vector<std::vector<float>> means;            // by gradient; empty if it has no chunks
    std::vector<std::vector<GradientPart>> received;  // likewise
  };
  // Call it for steps 0, 1, 2 and so on. The mean is ((rank 0 + rank 1) + ...) / ranks, in f32.
  StepResult step(int number);

 private:
  struct Chunk {
    std::size_t gradient = 0;
    std::size_t first = 0;
    std::size_t count = 0;
  };
  std::vector<bool> select(int number) const;
  bool decays(std::size_t i, int rank, int number) const;

  const ToyModel& model_;
  int ranks_;
  GradientOptions options_;
  float decay_;
  std::vector<Chunk> chunks_;
  std::vector<std::vector<std::vector<float>>> residuals_;  // by rank, chunk, element
  std::vector<std::uint32_t> ages_;
  std::vector<std::vector<double>> norms_;   // by step, chunk
  std::vector<std::vector<bool>> selected_;  // likewise
};

}  // namespace sluice::gradient
