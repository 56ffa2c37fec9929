// model.h - synthetic gradients of a training, and a naive computation of their means.
//
// Every (rank, step, gradient, element) has a different value. The reference adds the ranks in
// order, as `direct` does, so results can be compared bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gradient/reducer.h"
#include "sluice/torch/gradient_options.h"

namespace sluice::gradient {

using Bytes = std::vector<std::byte>;

class ToyModel {
 public:
  explicit ToyModel(std::vector<GradientSpec> gradients) : gradients_{std::move(gradients)} {}

  const std::vector<GradientSpec>& gradients() const { return gradients_; }
  std::size_t size() const { return gradients_.size(); }

  // Returns the gradient of a rank in a step, in the gradient's type.
  Bytes gradient(std::size_t i, int rank, int step, double loss_scale = 1) const;
  void write(Reducer& reducer, std::size_t i, int rank, int step) const;
  // Writes all gradients, in an order that depends on rank and step.
  void write_all(Reducer& reducer, int rank, int step) const;
  std::vector<std::size_t> random_order(int rank, int step) const;

  // Multiplies all values; `replacements` replace single values.
  std::function<double(int rank, int step)> scale = [](int, int) { return 1.0; };
  struct Replacement {
    int rank = 0;
    int step = 0;
    std::size_t gradient = 0;
    std::size_t element = 0;
    double value = 0;
  };
  std::vector<Replacement> replacements;
  // Whether a rank has gradient i in a step.
  std::function<bool(std::size_t i, int rank, int step)> has = [](std::size_t, int, int) {
    return true;
  };

 private:
  double value(std::size_t i, std::size_t element, int rank, int step) const;
  std::vector<GradientSpec> gradients_;
};

// Gradients of every type: small, large, empty and of odd sizes.
ToyModel mixed_model();
// f32 gradients only, for the wire.
ToyModel plain_model();

// Computes the expected means of each step, and the scales of the next step.
class ReferenceMeans {
 public:
  ReferenceMeans(const ToyModel& model, int ranks, const GradientOptions& options)
      : model_{model}, ranks_{ranks}, options_{options} {
    if (options.loss_scale.enabled) loss_scale = options.loss_scale.initial;
  }

  struct StepResult {
    float wire_scale = 1;  // of this step
    double loss_scale = 1;
    std::vector<Bytes> means;  // by gradient
    bool overflowed = false;   // only on the f16 wire
    bool not_finite = false;
    float largest = 0;  // largest magnitude of the sums on the wire
    bool skipped = false;
  };
  // Returns the result of a step that uses these scales.
  StepResult step_with_scales(int step, float wire, double loss) const;
  // Updates the scales for the next step.
  void update_scales(const StepResult& step);
  // Returns the result of a step with the current scales, and updates them.
  StepResult run_step(int step) {
    StepResult done = step_with_scales(step, wire_scale, loss_scale);
    update_scales(done);
    return done;
  }

  float wire_scale = 1;
  double loss_scale = 1;

 private:
  Bytes mean_in_type(std::size_t i, int number, StepResult& step) const;
  Bytes mean_over_wire(std::size_t i, int number, StepResult& step) const;

  const ToyModel& model_;
  int ranks_;
  GradientOptions options_;
  int clean_steps_ = 0;
};

Bytes result_of(Reducer& reducer, const ToyModel& model, std::size_t i);
void expect_results(Reducer& reducer, const ToyModel& model, const std::vector<Bytes>& means);

}  // namespace sluice::gradient
