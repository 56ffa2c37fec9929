// iteration.h - one step of a training on a cluster.
//
// Compute is what the device takes for its batch by itself, the optimizer included. Buckets leave
// as they become ready and follow each other, as collectives of one communicator do; the step ends
// when compute and the last of them have ended, and then its slowest rank is waited for. With
// double buffering the gradients of the step before travel while this one computes, and the longer
// of the two counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/device_speed.h"
#include "plan/models.h"
#include "plan/recipe.h"
#include "simulate/collective.h"
#include "simulate/straggler.h"
#include "simulate/what_if.h"

namespace sluice {

struct BucketTime {
  double bytes = 0;
  double ready_s = 0;
  double begin_s = 0;
  double end_s = 0;
  std::string algorithm;
};

struct IterationTime {
  double compute_s = 0;
  double seconds = 0;  // the whole step
  double straggler_s = 0;
  double exposed_s = 0;  // compute waits for communication, stragglers apart
  std::vector<BucketTime> buckets;
};

struct StepKind {
  double batch = 0;  // a rank's, in one backward
  int accumulate = 1;
  double sparsity = 0;
};

// Keeps what it has worked out: a collective of the same size is simulated once.
// Thread-safety: one thread at a time.
class IterationSimulator {
 public:
  static Result<IterationSimulator> of(const WhatIf& world, const Recipe& recipe,
                                       const DeviceSpeed& speed, int ranks);

  Result<IterationTime> step(const StepKind& kind);

 private:
  IterationSimulator(const WhatIf& world, Recipe recipe, DeviceSpeed speed, ModelTable model,
                     CollectiveSimulator collectives, int ranks);
  struct Choice {
    const Algorithm* algorithm = nullptr;
    Shape shape;
  };
  Result<Choice> choice_for(double bytes);
  // When each rank is done, and with what.
  Result<std::vector<double>> all_reduce(double bytes, const std::vector<double>& starts_s,
                                         std::string& algorithm);

  WhatIf world_;
  Recipe recipe_;
  DeviceSpeed speed_;
  ModelTable model_;
  CollectiveSimulator collectives_;
  int ranks_;
  std::map<double, Choice> choices_;    // by bytes
  std::map<double, double> durations_;  // of all ranks starting together, by bytes
};

}  // namespace sluice
