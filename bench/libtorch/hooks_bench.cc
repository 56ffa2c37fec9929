// hooks_bench.cc - the overhead of DataParallel on a backward whose gradients cost almost nothing.
//
//   hooks_bench --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
//
// There are 100 MB of gradients on one rank, so nothing is sent and only the way into the pool
// counts. "zeroed": .grad is the slot, which zero_grad() zeroes and backward() adds to.
// "undefined": backward() creates a tensor, which the hook copies into the slot. "alone": without
// DataParallel. All gradients are checked at the end.
#include <benchmark/benchmark.h>

#include <optional>
#include <stdexcept>

#include "sluice/torch/data_parallel.h"

namespace sluice::bench {
namespace {

constexpr int kTensors = 100;
constexpr std::int64_t kElements = 250'000;

void backward(benchmark::State& state, bool parallel, bool to_none) {
  at::set_num_threads(1);
  torch::OrderedDict<std::string, torch::Tensor> parameters;
  std::vector<torch::Tensor> seeds;
  for (int i = 0; i < kTensors; ++i) {
    parameters.insert(std::to_string(i), torch::ones({kElements}).set_requires_grad(true));
    seeds.push_back(torch::full({kElements}, 1.5F));
  }
  std::vector<Communicator> ranks = Communicator::in_process(1);
  std::optional<DataParallel> averaged;
  if (parallel) averaged.emplace(parameters, ranks[0]);

  const auto step = [&] {
    std::vector<torch::Tensor> outputs;
    for (auto& item : parameters) {
      torch::Tensor& gradient = item.value().mutable_grad();
      if (to_none) {
        gradient.reset();
      } else if (gradient.defined()) {
        gradient.zero_();
      }
      outputs.push_back(-item.value());
    }
    torch::autograd::backward(outputs, seeds);
    if (parallel) averaged->finish();
  };
  for (int i = 0; i < 3; ++i) step();
  for ([[maybe_unused]] auto _ : state) step();
  for (const auto& item : parameters) {
    if (!item.value().grad().eq(-1.5).all().item<bool>())
      throw std::runtime_error{c10::str("wrong gradient of ", item.key())};
  }
}

// The cost per parameter: a step with 160 parameters, as in ResNet-50, of almost no elements.
void many(benchmark::State& state, bool parallel) {
  at::set_num_threads(1);
  torch::nn::Sequential model;
  for (int i = 0; i < 80; ++i) model->push_back(torch::nn::Linear{1, 1});
  std::vector<Communicator> ranks = Communicator::in_process(1);
  std::optional<DataParallel> averaged;
  if (parallel) averaged.emplace(*model, ranks[0]);
  const torch::Tensor input = torch::ones({1, 1});
  for ([[maybe_unused]] auto _ : state) {
    model->zero_grad(true);
    model->forward(input).backward();
    if (parallel) averaged->finish();
  }
}

BENCHMARK_CAPTURE(many, alone, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(many, parallel, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backward, zeroed_alone, false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backward, undefined_alone, false, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backward, zeroed, true, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(backward, undefined, true, true)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice::bench

BENCHMARK_MAIN();
