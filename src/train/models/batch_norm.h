// batch_norm.h - the batch norm of the networks in this folder. Each rank normalises by its own
// batches, unless the batch norm is synchronised.
//
// It has the names and values of torch::nn::BatchNorm2d, and with one rank the same bits.
#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <ostream>
#include <utility>
#include <vector>

#include "sluice/communicator.h"
#include "sluice/torch/sync_batch_norm.h"

namespace sluice::train {

// Not derived from torch::nn::BatchNorm2d, because libtorch 1.13 does not export all of it.
class BatchNormImpl final
    : public torch::nn::NormImplBase<2, BatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using NormImplBase::NormImplBase;

  torch::Tensor forward(const torch::Tensor& input);

  // From now on, normalises by the batches of all ranks of `group`, as SyncBatchNorm does.
  void synchronise(const Communicator& group);
  // From now on, the running statistics are those of the last batch only (PFN, 2017).
  void keep_last_batch();
  // The time spent waiting for other ranks so far.
  double waited_s() const { return synchronised_.is_empty() ? 0 : synchronised_->waited_s(); }

  void pretty_print(std::ostream& stream) const override;

 private:
  void _check_input_dim(const torch::Tensor& input) override;

  SyncBatchNorm synchronised_{nullptr};  // shares our tensors; not a module of the network
};
TORCH_MODULE(BatchNorm);

// These functions apply to every batch norm in `network`. Nothing else may use `group`.
void synchronise_batch_norms(torch::nn::Module& network, const Communicator& group);
void keep_last_batches(torch::nn::Module& network);
double seconds_waited(const torch::nn::Module& network);

// While this object exists, the running statistics of a network are the average over all ranks. Its
// destructor restores each rank's own statistics.
//
// Batch norms that are not synchronised have different statistics at every rank. An evaluation or
// an export uses the average; training goes on with each rank's own statistics, so an evaluation
// does not change it.
class AveragedStatistics {
 public:
  // Every rank must call it. Throws Error, as Work::wait() does. `network` must outlive it.
  AveragedStatistics(torch::nn::Module& network, Communicator& communicator);
  ~AveragedStatistics();
  AveragedStatistics(const AveragedStatistics&) = delete;
  AveragedStatistics& operator=(const AveragedStatistics&) = delete;

 private:
  std::vector<std::pair<torch::Tensor, torch::Tensor>> own_;  // a buffer and its own value
};

}  // namespace sluice::train
