// iteration.h - one training step on a cluster.
//
// A third of a pass is forward and two thirds are backward, in proportion to their floating-point
// operations. In each of them, a layer takes its share of the operations in the model's table. So
// the large gradients at the end of a model are ready early.
//
// A bucket is sent when backward has computed it. Buckets run one after the other, as the
// collectives of one communicator do. The optimizer runs when compute and the last bucket have
// ended. Then the step waits for the slowest rank. With double buffering, the gradients of the
// previous step travel while this step computes, and the longer of the two counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "recipe/models.h"
#include "recipe/recipe.h"
#include "simulate/collective.h"

namespace sluice::simulate {

// The forward part of a pass; the rest is backward.
inline constexpr double kForwardPart = 1.0 / 3;

struct ReadyBucket {
  double ready = 0;         // fraction of the pass after which it is ready
  double dense_bytes = 0;   // on the wire, of gradients that are always sent
  double sparse_bytes = 0;  // on the wire at sparsity 0, of gradients that sparsity reduces
  double bytes(double sparsity) const { return dense_bytes + sparse_bytes * (1 - sparsity); }
};

// The buckets in the order in which they are sent. With double buffering one bucket has all
// gradients.
Result<std::vector<ReadyBucket>> ready_buckets(const recipe::ModelTable& model,
                                               const recipe::Recipe& recipe, double sparsity);

// The bytes of the norms from which a sparse step chooses its gradient chunks.
double norm_bytes(const recipe::ModelTable& model, const recipe::Recipe& recipe);

struct BucketTime {
  double bytes = 0;
  double ready_s = 0;
  double begin_s = 0;
  double end_s = 0;
  std::string algorithm;
};

// The work of one rank in a step.
struct IterationWork {
  double pass_s = 0;   // of one forward and backward
  int accumulate = 1;  // number of passes; the last one sends the buckets
  double optimizer_s = 0;
  double input_s = 0;  // time of the input pipeline for the step's images
  double sparsity = 0;
  Spread spread;
};

struct IterationTime {
  IterationWork work;
  double compute_s = 0;    // passes, sparse selection and optimizer
  double exposed_s = 0;    // the wait for communication, without stragglers
  double straggler_s = 0;  // the wait for the slowest rank
  double stall_s = 0;      // the wait for images
  double seconds = 0;      // the whole step
  std::vector<BucketTime> buckets;
};

// Keeps its results, so a collective of the same size is simulated only once.
// Thread-safety: one thread at a time.
class IterationSimulator {
 public:
  static Result<IterationSimulator> of(const ClusterScenario& scenario,
                                       const recipe::Recipe& recipe, int ranks);

  Result<IterationTime> step(const IterationWork& work);

 private:
  IterationSimulator(const ClusterScenario& scenario, recipe::Recipe recipe,
                     recipe::ModelTable model, CollectiveSimulator collectives, int ranks);
  struct Choice {
    const Algorithm* algorithm = nullptr;
    Shape shape;
  };
  Result<Choice> choice_for(double bytes);
  // The time at which each rank is done. Sets the name of the algorithm.
  Result<std::vector<double>> all_reduce(double bytes, const std::vector<double>& starts_s,
                                         std::string& algorithm);
  // Appends the times of the buckets. Returns the time at which each rank has the last sum.
  Result<std::vector<double>> send_buckets(const IterationWork& work,
                                           const std::vector<double>& delays_s,
                                           std::vector<BucketTime>& times);

  ClusterScenario scenario_;
  recipe::Recipe recipe_;
  recipe::ModelTable model_;
  CollectiveSimulator collectives_;
  int ranks_;
  std::map<double, Choice> choices_;    // by bytes
  std::map<double, double> durations_;  // by bytes, if all ranks start together
};

}  // namespace sluice::simulate
