#include "train/loop/averaged_statistics.h"

#include <torch/utils.h>

#include "sluice/torch/sync_batch_norm.h"

namespace sluice::train {

AveragedStatistics::AveragedStatistics(torch::nn::Module& network, Communicator& communicator) {
  if (communicator.size() == 1) return;
  const torch::NoGradGuard no_grad;
  for (const auto& buffer : network.named_buffers()) {
    own_.emplace_back(buffer.value(), buffer.value().clone());
  }
  average_running_statistics(network, communicator);
}

AveragedStatistics::~AveragedStatistics() {
  const torch::NoGradGuard no_grad;
  for (auto& [buffer, held] : own_) buffer.copy_(held);
}

}  // namespace sluice::train
