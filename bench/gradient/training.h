// training.h - a training of one model on one rank, with one way to send gradients.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/communicator.h"
#include "sluice/torch/data_parallel.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/torch/sgd.h"
#include "train/models/models.h"

namespace sluice::bench {

// A gradient, in the order of backward.
struct ReadyGradient {
  double ready_s = 0;  // since the start of the step
  double bytes = 0;    // sent by its rank
};

// The earliest time at which all gradients can have been sent: the link sends at full rate whenever
// a gradient is ready.
inline double earliest_end(std::span<const ReadyGradient> gradients, double bytes_per_s) {
  double free_s = 0;
  for (const ReadyGradient& gradient : gradients)
    free_s = std::max(free_s, gradient.ready_s) + gradient.bytes / bytes_per_s;
  return free_s;
}

struct Workload {
  std::string model = "resnet18";
  int image = 64;
  int batch = 32;
  int classes = 1000;
  bool set_to_none = false;  // zero_grad() drops gradients instead of zeroing them
};

class Training {
 public:
  // Without options there is no communication.
  Training(const Workload& workload, Communicator& comm, std::optional<GradientOptions> options);

  // Forward, backward, communication and update, always on the same batch.
  void step();
  // Applies the gradients that double buffering still has in flight.
  void flush();

  // The norm of all weights, in f64.
  double weights_norm() const;
  double distance_to(const Training& other) const;
  std::uint64_t weights_hash() const;
  double gradient_bytes() const;
  double loss() const { return loss_; }  // of the last step

  // Runs a step and returns when backward produced each gradient; sets the time of the update.
  std::vector<ReadyGradient> ready_times(double& update_s);

 private:
  void backward();

  bool set_to_none_;
  std::shared_ptr<train::Model> model_;
  torch::Tensor images_;
  torch::Tensor labels_;
  std::unique_ptr<Sgd> optimizer_;
  std::unique_ptr<DataParallel> parallel_;
  double loss_ = 0;
};

}  // namespace sluice::bench
