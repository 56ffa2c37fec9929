#include "train/models/batch_norm.h"

#include <torch/utils.h>

namespace sluice::train {

void BatchNormImpl::_check_input_dim(const torch::Tensor& input) {
  TORCH_CHECK(input.dim() == 4, "batch normalisation of images got a tensor of ", input.dim(),
              " dimensions");
}

torch::Tensor BatchNormImpl::forward(const torch::Tensor& input) {
  if (!synchronised_.is_empty()) {
    synchronised_->train(is_training());
    return synchronised_->forward(input);
  }
  _check_input_dim(input);
  if (is_training()) num_batches_tracked += 1;
  return torch::batch_norm(input, weight, bias, running_mean, running_var, is_training(),
                           *options.momentum(), options.eps(),
                           at::globalContext().userEnabledCuDNN());
}

void BatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "sluice::BatchNorm(" << options.num_features() << ")";
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
