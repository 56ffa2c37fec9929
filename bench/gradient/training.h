// training.h - one way to train a model: its steps, and what its gradients are sent by.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/gradient/bound.h"
#include "sluice/communicator.h"
#include "sluice/gradients.h"
#include "sluice/torch/data_parallel.h"
#include "sluice/torch/sgd.h"
#include "train/models/models.h"

namespace sluice::bench {

struct Workload {
  std::string model = "resnet18";
  int image = 64;
  int batch = 32;
  int classes = 1000;
  bool set_to_none = false;  // zero_grad() drops gradients instead of clearing them
};

class Training {
 public:
  // Without options its gradients stay where they are.
  Training(const Workload& workload, Communicator& comm, std::optional<GradientOptions> options);

  // Forward, backward, communication and update, on the same batch again and again.
  void step();
  // Takes in what double buffering has under way.
  void flush();

  // Of all weights, in f64.
  double weights_norm() const;
  double distance_to(const Training& other) const;
  std::uint64_t weights_hash() const;
  double gradient_bytes() const;
  double loss() const { return loss_; }  // of the last step

  // A step, and when backward had made each gradient; its last part, the update, takes `update_s`.
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
