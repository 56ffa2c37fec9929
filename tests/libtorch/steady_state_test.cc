// In the steady state, hooks and finish() themselves allocate nothing. This is a separate program,
// because it counts every allocation of the process. libtorch allocates too, so the test compares
// two trainings: one with DataParallel, and one with a hook that changes .grad in the same way.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "sluice/torch/data_parallel.h"
#include "tests/engine/counters.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

// Keeps .grad at one address, as DataParallel does.
class KeepAddress : public torch::autograd::FunctionPostHook {
 public:
  explicit KeepAddress(Tensor parameter)
      : parameter_{std::move(parameter)}, memory_{torch::zeros_like(parameter_)} {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    const torch::NoGradGuard no_gradient;
    Tensor& gradient = parameter_.mutable_grad();
    if (!gradient.is_same(memory_)) {
      memory_.copy_(gradient);
      gradient = memory_;
    }
    return outputs;
  }

 private:
  Tensor parameter_;
  Tensor memory_;
};

// Returns the number of allocations in the whole process in 20 steps, after 10 steps of warm-up.
long allocations_of_training(Communicator& comm, bool parallel, bool to_none,
                             const GradientOptions& options) {
  Network model{Setting{.type = torch::kFloat}, std::nullopt};
  std::vector<decltype(torch::autograd::impl::grad_accumulator(Tensor{}))> accumulators;
  std::optional<DataParallel> averaged;
  if (parallel) {
    averaged.emplace(*model, comm, options);
  } else {
    for (const Tensor& each : model->parameters()) {
      accumulators.push_back(torch::autograd::impl::grad_accumulator(each));
      accumulators.back()->add_post_hook(std::make_unique<KeepAddress>(each));
    }
  }
  const Samples batch = samples(torch::kFloat, 0, 0, 4);
  const auto step = [&] {
    model->zero_grad(to_none);
    model->forward(batch.inputs).square().mean().backward();
    if (parallel) {
      averaged->finish();
    } else {
      // finish() lists the parameters to find added ones, and libtorch allocates that list.
      EXPECT_EQ(model->named_parameters().size(), 6U);
    }
  };
  for (int i = 0; i < 10; ++i) step();
  comm.barrier();
  const long before = engine::allocations();
  comm.barrier();
  for (int i = 0; i < 20; ++i) step();
  comm.barrier();
  const long during = engine::allocations() - before;
  comm.barrier();
  return during;
}

TEST(SteadyState, HooksAllocateNothing) {
  for (const bool double_buffering : {false, true}) {
    for (const bool to_none : {false, true}) {
      run_torch_ranks(2, [&](Communicator& comm) {
        const GradientOptions options{.theta = 900, .double_buffering = double_buffering};
        const long without = allocations_of_training(comm, false, to_none, options);
        EXPECT_LE(allocations_of_training(comm, true, to_none, options), without)
            << (to_none ? "undefined" : "zeroed") << (double_buffering ? ", two buffers" : "");
      });
    }
  }
}

}  // namespace
}  // namespace sluice::libtorch
