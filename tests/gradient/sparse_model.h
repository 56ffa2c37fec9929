// sparse_model.h - a naive computation of the sparse steps of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/gradient/model.h"

namespace sluice::gradient {

// Large and small tensors, some smaller than a chunk, and vectors and other types between them.
ToyModel sparse_model();

// A weight of a gradient, the same at all ranks.
float weight_at(std::size_t i, std::size_t element, int step);
std::vector<std::vector<float>> weights_at(const ToyModel& model, int step);

class NaiveSparse {
 public:
  NaiveSparse(const ToyModel& model, int ranks, const GradientOptions& options, float decay);

  struct StepResult {
    bool sparse = false;
    std::vector<std::vector<float>> means;           // by gradient; empty if it has no chunks
    std::vector<std::vector<GradientPart>> arrived;  // likewise
  };
  // Call it for step 0, 1, 2 and so on. The mean is ((rank 0 + rank 1) + ...) / ranks, in f32.
  StepResult step(int number);

 private:
  struct Piece {
    std::size_t gradient = 0;
    std::size_t first = 0;
    std::size_t count = 0;
  };
  std::vector<bool> choose(int number) const;
  bool decays(std::size_t i, int rank, int number) const;

  const ToyModel& model_;
  int ranks_;
  GradientOptions options_;
  float decay_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<std::vector<float>>> held_;  // by rank, piece, element
  std::vector<std::uint32_t> ages_;
  std::vector<std::vector<double>> norms_;  // by step, piece
  std::vector<std::vector<bool>> chosen_;   // likewise
};

}  // namespace sluice::gradient
