// batch_norm.h - batch normalisation as the networks of this folder have it: each rank by its own
// batches, until it is told otherwise.
//
// Names, values and, at one rank, bits are those of torch::nn::BatchNorm2d.
#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <ostream>

#include "sluice/communicator.h"
#include "sluice/torch/sync_batch_norm.h"

namespace sluice::train {

// Not derived from torch::nn::BatchNorm2d, which libtorch 1.13 does not export all of.
class BatchNormImpl final
    : public torch::nn::NormImplBase<2, BatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using NormImplBase::NormImplBase;

  torch::Tensor forward(const torch::Tensor& input);

  // From now on a batch is that of all ranks of `group`, as in sync_batch_norm.h.
  void synchronise(const Communicator& group);
  // Running statistics become those of the last batch alone (PFN, 2017).
  void keep_last_batch();
  // For other ranks, so far.
  double waited_s() const { return synchronised_.is_empty() ? 0 : synchronised_->waited_s(); }

  void pretty_print(std::ostream& stream) const override;

 private:
  void _check_input_dim(const torch::Tensor& input) override;

  SyncBatchNorm synchronised_{nullptr};  // its tensors are ours; it is no module of the network's
};
TORCH_MODULE(BatchNorm);

// Of every batch norm in `network`. A group is for these alone.
void synchronise_batch_norms(torch::nn::Module& network, const Communicator& group);
void keep_last_batches(torch::nn::Module& network);
double seconds_waited(const torch::nn::Module& network);

}  // namespace sluice::train
