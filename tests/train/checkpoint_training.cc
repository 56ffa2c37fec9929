#include "tests/train/checkpoint_training.h"

#include "sluice/torch/lars.h"
#include "sluice/torch/rmsprop_warm_up.h"
#include "sluice/torch/sgd.h"

namespace sluice::train {

CheckpointTraining::CheckpointTraining(Communicator& comm, const GradientOptions& options,
                                       Optimizer kind)
    : network{libtorch::Setting{.type = torch::kFloat, .normalise = true}, std::nullopt},
      rank_{comm.rank()},
      ranks_{comm.size()} {
  const std::vector<torch::Tensor> parameters = network->parameters();
  switch (kind) {
    case Optimizer::Sgd:
      optimizer = std::make_unique<Sgd>(parameters, SgdOptions{.lr = 0.05, .weight_decay = 0.01});
      break;
    case Optimizer::Lars:
      optimizer = std::make_unique<Lars>(parameters,
                                         LarsOptions{.lr = 1, .weight_decay = 0.01, .eta = 0.05});
      break;
    case Optimizer::Rmsprop:
      optimizer = std::make_unique<RmspropWarmUp>(
          parameters, RmspropWarmUpOptions{.lr = 0.05, .weight_decay = 0.01});
      break;
  }
  parallel.emplace(*network, comm, options);
  parallel->attach(*optimizer);
}

void CheckpointTraining::step(int number) {
  const libtorch::Samples batch =
      libtorch::samples(torch::kFloat, number, libtorch::kBatch * rank_ / ranks_,
                        libtorch::kBatch * (rank_ + 1) / ranks_);
  optimizer->zero_grad(true);
  const torch::Tensor loss =
      torch::nn::functional::cross_entropy(network->forward(batch.inputs), batch.labels);
  (loss * parallel->loss_scale()).backward();
  parallel->finish();
  optimizer->step();
}

libtorch::NamedTensors CheckpointTraining::everything() const {
  libtorch::NamedTensors all = libtorch::weights(*network);
  for (const auto& item : network->named_buffers())
    all.emplace_back(item.key(), item.value().clone());
  for (const torch::Tensor& velocity : optimizer->velocities())
    all.emplace_back("velocity", velocity.clone());
  return all;
}

TrainingState saved_state(std::int64_t step) {
  return {.step = step,
          .seed = 42,
          .settings = {{"recipe", "demo"}, {"empty", ""}, {"lines", "a = 1\nb = 2"}},
          .notes = {{"epoch", "1.5"}},
          .accuracy = 71.25,
          .best_accuracy = 80,
          .best_step = 3};
}

std::map<std::string, GradientOptions> gradient_settings() {
  std::map<std::string, GradientOptions> ways;
  const SparseOptions sparse{.sparsity = 0.85, .chunk = 16, .dense_steps = 1};
  const LossScaleOptions scaled{.enabled = true, .initial = 1024, .growth_steps = 2};
  ways["f32"] = {};
  ways["f16"] = {.wire = WireType::F16, .force_wire = true};
  ways["sparse"] = {.sparse = sparse};
  ways["two buffers"] = {.double_buffering = true};
  ways["sparse, two buffers"] = {.double_buffering = true, .sparse = sparse};
  ways["scaled"] = {.loss_scale = scaled};
  ways["all at once"] = {.wire = WireType::F16,
                         .force_wire = true,
                         .double_buffering = true,
                         .sparse = sparse,
                         .loss_scale = scaled};
  for (auto& [name, options] : ways) options.theta = 900;
  return ways;
}

}  // namespace sluice::train
