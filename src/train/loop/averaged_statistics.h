// averaged_statistics.h - a network's running statistics as the average over all ranks, for a
// while.
//
// Plain batch norms see their own rank's batches, so their running statistics differ from rank to
// rank. What is evaluated or handed to others has the average; training then goes on with each
// rank's own, so that it does not matter to it when somebody looked.
#pragma once

#include <torch/nn/module.h>

#include <utility>
#include <vector>

#include "sluice/communicator.h"

namespace sluice::train {

class AveragedStatistics {
 public:
  // Every rank must call it. Throws Error, as Work::wait() does. `network` must outlive it.
  AveragedStatistics(torch::nn::Module& network, Communicator& communicator);
  ~AveragedStatistics();
  AveragedStatistics(const AveragedStatistics&) = delete;
  AveragedStatistics& operator=(const AveragedStatistics&) = delete;

 private:
  std::vector<std::pair<torch::Tensor, torch::Tensor>> own_;  // the buffer, and what it held
};

}  // namespace sluice::train
