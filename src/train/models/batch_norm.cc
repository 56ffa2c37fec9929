#include "train/models/batch_norm.h"

namespace sluice {

torch::Tensor BatchNormImpl::forward(const torch::Tensor& input) {
  if (synchronised_.is_empty()) return BatchNorm2dImpl::forward(input);
  synchronised_->train(is_training());
  return synchronised_->forward(input);
}

void BatchNormImpl::synchronise(const Communicator& group) {
  synchronised_ = SyncBatchNorm{options, group};
  synchronised_->weight = weight;
  synchronised_->bias = bias;
  synchronised_->running_mean = running_mean;
  synchronised_->running_var = running_var;
  synchronised_->num_batches_tracked = num_batches_tracked;
}

void BatchNormImpl::keep_last_batch() { options.momentum(1.0); }

void synchronise_batch_norms(torch::nn::Module& network, const Communicator& group) {
  for (const std::shared_ptr<torch::nn::Module>& module : network.modules()) {
    if (auto* const norm = module->as<BatchNorm>()) norm->synchronise(group);
  }
}

void keep_last_batches(torch::nn::Module& network) {
  for (const std::shared_ptr<torch::nn::Module>& module : network.modules()) {
    if (auto* const norm = module->as<BatchNorm>()) norm->keep_last_batch();
  }
}

double seconds_waited(const torch::nn::Module& network) {
  double seconds = 0;
  for (const std::shared_ptr<torch::nn::Module>& module : network.modules()) {
    if (const auto* const norm = module->as<BatchNorm>()) seconds += norm->waited_s();
  }
  return seconds;
}

}  // namespace sluice
