// Trains a model of your own on several ranks. Run it with: sluice launch -n 2 -- own_model
#include <torch/torch.h>

#include <cstdio>
#include <numbers>

#include "sluice/torch/data_parallel.h"

// Points near a spiral with two arms, and the arm of each point.
struct Spiral {
  explicit Spiral(std::int64_t count) : arm{torch::randint(2, {count})} {
    const torch::Tensor along = torch::rand({count}).sqrt();
    const torch::Tensor angle = along * 9 + arm * std::numbers::pi;
    point = torch::stack({along * angle.cos(), along * angle.sin()}, 1);
  }
  torch::Tensor arm, point;
};

struct ClassifierImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return last->forward(torch::tanh(second->forward(torch::tanh(first->forward(x)))));
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 64));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(64, 64));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(64, 2));
};
TORCH_MODULE(Classifier);

int main() {
  try {
    auto comm = sluice::Communicator::from_env();
    torch::manual_seed(static_cast<std::uint64_t>(comm.rank()));  // each rank draws other data

    Classifier model;
    sluice::DataParallel parallel{*model, comm};  // all ranks now have the weights of rank 0
    torch::optim::Adam optimizer{model->parameters(), torch::optim::AdamOptions(0.01)};
    for (int step = 0; step < 400; ++step) {
      const Spiral batch{256};
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model->forward(batch.point), batch.arm).backward();
      parallel.finish();  // .grad is now the mean over all ranks
      optimizer.step();
    }

    const Spiral test{2000};
    float right =
        model->forward(test.point).argmax(1).eq(test.arm).to(torch::kFloat).mean().item<float>();
    comm.all_reduce(std::span{&right, 1}, {.op = sluice::ReduceOp::Mean}).wait();
    if (comm.rank() == 0) std::printf("accuracy %.1f%% on %d ranks\n", right * 100, comm.size());
    return right > 0.95F ? 0 : 1;
  } catch (const sluice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
