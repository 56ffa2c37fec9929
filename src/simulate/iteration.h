// iteration.h - one step of a training on a cluster.
//
// Buckets leave as they become ready in backward and follow each other, as collectives of one
// communicator do; the optimizer comes when compute and the last of them have ended, and then the
// slowest rank is waited for. With double buffering the gradients of the step before travel while
// this one computes, and the longer of the two counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "recipe/models.h"
#include "recipe/recipe.h"
#include "simulate/collective.h"
#include "simulate/straggler.h"
#include "simulate/what_if.h"

namespace sluice::simulate {

struct BucketTime {
  double bytes = 0;
  double ready_s = 0;
  double begin_s = 0;
  double end_s = 0;
  std::string algorithm;
};

// What a rank does by itself.
struct StepKind {
  double pass_s = 0;   // one forward and backward
  int accumulate = 1;  // how many of them; the last one's buckets leave
  double optimizer_s = 0;
  double input_s = 0;  // what its input takes to deliver the step's images
  double sparsity = 0;
  Spread spread;
};

struct IterationTime {
  StepKind kind;
  double compute_s = 0;    // passes, sparse selection and optimizer
  double exposed_s = 0;    // compute waits for communication, stragglers apart
  double straggler_s = 0;  // and for the slowest rank
  double stall_s = 0;      // and for images
  double seconds = 0;      // the whole step
  std::vector<BucketTime> buckets;
};

// Keeps what it has worked out: a collective of the same size is simulated once.
// Thread-safety: one thread at a time.
class IterationSimulator {
 public:
  static Result<IterationSimulator> of(const WhatIf& world, const recipe::Recipe& recipe,
                                       int ranks);

  Result<IterationTime> step(const StepKind& kind);

 private:
  IterationSimulator(const WhatIf& world, recipe::Recipe recipe, recipe::ModelTable model,
                     CollectiveSimulator collectives, int ranks);
  struct Choice {
    const Algorithm* algorithm = nullptr;
    Shape shape;
  };
  Result<Choice> choice_for(double bytes);
  // When each rank is done, and with what.
  Result<std::vector<double>> all_reduce(double bytes, const std::vector<double>& starts_s,
                                         std::string& algorithm);
  // Appends the buckets' times; when each rank has the last one's sums.
  Result<std::vector<double>> send_buckets(const StepKind& kind, const std::vector<double>& late,
                                           std::vector<BucketTime>& times);

  WhatIf world_;
  recipe::Recipe recipe_;
  recipe::ModelTable model_;
  CollectiveSimulator collectives_;
  int ranks_;
  std::map<double, Choice> choices_;    // by bytes
  std::map<double, double> durations_;  // of all ranks starting together, by bytes
};

}  // namespace sluice::simulate
