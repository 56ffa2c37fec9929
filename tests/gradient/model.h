// model.h - made-up gradients of a training, and what becomes of them, worked out one at a time.
//
// Values differ in every (rank, step, gradient, element). The reference adds rank 0 + rank 1 + ...
// as `direct` does, so results can be compared bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gradient/reducer.h"
#include "sluice/gradients.h"

namespace sluice::gradient {

using Bytes = std::vector<std::byte>;

class ToyModel {
 public:
  explicit ToyModel(std::vector<GradientSpec> gradients) : gradients_{std::move(gradients)} {}

  const std::vector<GradientSpec>& gradients() const { return gradients_; }
  std::size_t size() const { return gradients_.size(); }

  // What a rank has for a gradient in a step, as its type holds it.
  Bytes gradient(std::size_t i, int rank, int step, double loss_scale = 1) const;
  void write(Reducer& reducer, std::size_t i, int rank, int step) const;
  // All of them, in an order of that rank and step.
  void write_all(Reducer& reducer, int rank, int step) const;
  std::vector<std::size_t> random_order(int rank, int step) const;

  // Multiplies all values, and puts single ones elsewhere.
  std::function<double(int rank, int step)> scale = [](int, int) { return 1.0; };
  struct Odd {
    int rank = 0;
    int step = 0;
    std::size_t gradient = 0;
    std::size_t element = 0;
    double value = 0;
  };
  std::vector<Odd> odd;
  // Which gradients a rank has in a step.
  std::function<bool(std::size_t i, int rank, int step)> has = [](std::size_t, int, int) {
    return true;
  };

 private:
  double value(std::size_t i, std::size_t element, int rank, int step) const;
  std::vector<GradientSpec> gradients_;
};

// Small and large, none and odd, of every type.
ToyModel mixed_model();
// f32 only, for the wire.
ToyModel plain_model();

// What every rank must hold, step by step, and the scales that follow.
class ReferenceMeans {
 public:
  ReferenceMeans(const ToyModel& model, int ranks, const GradientOptions& options)
      : model_{model}, ranks_{ranks}, options_{options} {
    if (options.loss_scale.enabled) loss_scale = options.loss_scale.initial;
  }

  struct StepContext {
    float wire_scale = 1;  // that it carried
    double loss_scale = 1;
    std::vector<Bytes> means;  // by gradient
    bool overflowed = false;   // on the f16 wire alone
    bool not_finite = false;
    float largest = 0;  // of the sums on the wire
    bool skipped = false;
  };
  // The means of a step whose gradients carry these scales.
  StepContext averaged(int step, float wire, double loss) const;
  // What follows for the next scales.
  void learn(const StepContext& step);
  // Both, with the present scales.
  StepContext average(int step) {
    StepContext done = averaged(step, wire_scale, loss_scale);
    learn(done);
    return done;
  }

  float wire_scale = 1;
  double loss_scale = 1;

 private:
  Bytes mean_in_type(std::size_t i, int number, StepContext& step) const;
  Bytes mean_over_wire(std::size_t i, int number, StepContext& step) const;

  const ToyModel& model_;
  int ranks_;
  GradientOptions options_;
  int clean_ = 0;
};

Bytes result_of(Reducer& reducer, const ToyModel& model, std::size_t i);
void expect_results(Reducer& reducer, const ToyModel& model, const std::vector<Bytes>& means);

}  // namespace sluice::gradient
