// sync_batch_norm.h - batch normalisation over the batches of all ranks.
//
//   sluice::Communicator group = comm.split(0);  // only for such layers; all layers may share it
//   sluice::SyncBatchNorm norm{torch::nn::BatchNormOptions{64}, group};
//
// The batches of all ranks are normalised as one batch, and gradients are exact. Batches may differ
// in size and may be empty. Every rank must call forward(), and backward() through it, equally
// often and in the same order. Parameters, buffers, their names and eval() are those of
// torch::nn::BatchNorm1d to 3d; with one rank the results have the same bits.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <ostream>

#include "sluice/communicator.h"
#include "sluice/version.h"

namespace sluice {

class SLUICE_API SyncBatchNormImpl
    : public torch::nn::NormImplBase<0, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& norm, const Communicator& group);

  // `input`: batch x features, or batch x features x any shape. In training mode it blocks until
  // all ranks have called it, and throws Error, as Work::wait() does.
  torch::Tensor forward(const torch::Tensor& input);

  void pretty_print(std::ostream& stream) const override;

  // The time that forward() and backward() have waited for other ranks so far.
  double waited_s() const;

 private:
  void _check_input_dim(const torch::Tensor& input) override;
  double begin_batch();

  struct Impl;
  std::shared_ptr<Impl> impl_;
};
TORCH_MODULE(SyncBatchNorm);

// Replaces each running mean and variance in `module` by its average over all ranks. Plain batch
// normalisation needs this before an evaluation or a checkpoint, because its running statistics
// cover only the batches of their own rank. Every rank must call it. Throws Error, as Work::wait()
// does.
SLUICE_API void average_running_statistics(torch::nn::Module& module, Communicator& communicator);

}  // namespace sluice
