// sync_batch_norm.h - batch normalisation over the batches of all ranks.
//
//   sluice::Communicator group = comm.split(0);  // for all such layers of a model, and only them
//   sluice::SyncBatchNorm norm{torch::nn::BatchNormOptions{64}, group};
//
// Means and variances are those of one batch made of all ranks' batches, which may differ in size,
// even be empty; gradients too are exact. Every rank must call forward(), and backward() through
// it, the same number of times and in the same order. Parameters, buffers, their names and what
// eval() does are those of torch::nn::BatchNorm1d to 3d, and with one rank so are the bits.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <ostream>

#include "sluice/communicator.h"

namespace sluice {

namespace libtorch {
struct BatchStatistics;
}

class SyncBatchNormImpl
    : public torch::nn::NormImplBase<0, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& norm, const Communicator& group);

  // `input`: batch x features, or batch x features x any shape. While training, blocks until all
  // ranks have called it; throws Error, as Work::wait() does.
  torch::Tensor forward(const torch::Tensor& input);

  void pretty_print(std::ostream& stream) const override;

  // That forward() and backward() have waited for other ranks so far.
  double waited_s() const;

 private:
  void _check_input_dim(const torch::Tensor& input) override;
  double begin_batch();

  std::shared_ptr<libtorch::BatchStatistics> statistics_;
};
TORCH_MODULE(SyncBatchNorm);

// Plain batch normalisation sees its own rank's batches only, and so do its running statistics.
// This makes each running mean and variance in `module` the average over all ranks: to be called by
// every rank, before evaluation and before a checkpoint. Throws Error, as Work::wait() does.
void average_running_statistics(torch::nn::Module& module, Communicator& communicator);

}  // namespace sluice
