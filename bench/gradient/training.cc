#include "bench/gradient/training.h"

#include <chrono>
#include <cmath>

#include "libtorch/parameters.h"

namespace sluice::bench {

Training::Training(const Workload& workload, Communicator& comm,
                   std::optional<GradientOptions> options)
    : set_to_none_{workload.set_to_none},
      model_{train::make_model(
                 workload.model,
                 {.input = {.classes = workload.classes, .channels = 3, .image = workload.image},
                  .seed = 7})
                 .value()} {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(comm.rank()) + 100);
  images_ = torch::randn({workload.batch, 3, workload.image, workload.image}, generator);
  labels_ = torch::randint(workload.classes, {workload.batch}, generator, torch::kLong);
  optimizer_ = std::make_unique<Sgd>(model_->parameters(), SgdOptions{.lr = 1e-3, .momentum = 0.9});
  if (!options) return;
  parallel_ = std::make_unique<DataParallel>(*model_, comm, *options);
  parallel_->attach(*optimizer_);
}

void Training::backward() {
  optimizer_->zero_grad(set_to_none_);
  const torch::Tensor loss = train::smoothed_cross_entropy(model_->forward(images_), labels_, 0);
  loss.backward();
  loss_ = loss.item<double>();
}

void Training::step() {
  backward();
  if (parallel_) parallel_->finish();
  optimizer_->step();
}

void Training::flush() {
  if (!parallel_ || parallel_->flush().empty) return;
  optimizer_->step();
  optimizer_->zero_grad();
}

double Training::weights_norm() const {
  double squares = 0;
  for (const torch::Tensor& weights : model_->parameters())
    squares += weights.detach().to(torch::kDouble).square().sum().item<double>();
  return std::sqrt(squares);
}

double Training::distance_to(const Training& other) const {
  const auto own = model_->parameters();
  const auto others = other.model_->parameters();
  double squares = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const torch::Tensor difference =
        own[i].detach().to(torch::kDouble) - others[i].detach().to(torch::kDouble);
    squares += difference.square().sum().item<double>();
  }
  return std::sqrt(squares);
}

std::uint64_t Training::weights_hash() const {
  return libtorch::hash_of(model_->named_parameters().pairs());
}

double Training::gradient_bytes() const {
  double bytes = 0;
  for (const torch::Tensor& weights : model_->parameters())
    bytes += static_cast<double>(weights.nbytes());
  return bytes;
}

std::vector<ReadyGradient> Training::ready_times(double& update_s) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto since_begin = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<ReadyGradient> ready;
  std::vector<std::pair<torch::Tensor, unsigned>> hooks;
  for (torch::Tensor& weights : model_->parameters()) {
    const auto bytes = static_cast<double>(weights.nbytes());
    hooks.emplace_back(weights, weights.register_hook([&, bytes](const torch::Tensor&) {
      ready.push_back({since_begin(), bytes});
    }));
  }
  backward();
  const double backward_end = since_begin();
  optimizer_->step();
  update_s = since_begin() - backward_end;
  for (auto& [weights, hook] : hooks) weights.remove_hook(hook);
  return ready;
}

}  // namespace sluice::bench
