// After its first step an optimizer allocates nothing.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <memory>

#include "libtorch/optim/momentum_update.h"
#include "sluice/torch/lars.h"
#include "sluice/torch/sgd.h"
#include "tests/engine/counters.h"

namespace sluice::train {
namespace {

std::vector<torch::Tensor> parameters() {
  std::vector<torch::Tensor> made;
  for (int i = 1; i < 30; ++i) {
    made.push_back(torch::randn({i, 3, 3, 3}).requires_grad_());
    made.push_back(torch::randn({i}).requires_grad_());
  }
  made.push_back(torch::randn({4, 8, 3, 3}).to(torch::MemoryFormat::ChannelsLast).requires_grad_());
  for (torch::Tensor& parameter : made) parameter.mutable_grad() = torch::randn_like(parameter);
  // One gradient has other strides than its parameter.
  made.back().mutable_grad() = made.back().grad().contiguous();
  return made;
}

class HalfArrives final : public libtorch::GradientSource {
 public:
  libtorch::ReceivedGradient received(const torch::Tensor& parameter) const override {
    if (parameter.numel() <= 512) return {};
    return {.whole = false, .parts = parts_};
  }

 private:
  std::array<gradient::GradientPart, 2> parts_{{{0, 100}, {200, 56}}};
};

void expect_no_allocation(MomentumOptimizer& optimizer) {
  at::set_num_threads(1);
  for (const bool half : {false, true}) {
    libtorch::options_of(optimizer).source = half ? std::make_shared<HalfArrives>() : nullptr;
    optimizer.step();
    optimizer.step();
    const long before = engine::allocations();
    for (int i = 0; i < 10; ++i) {
      optimizer.set_lr(0.1 * i);
      optimizer.step();
    }
    EXPECT_EQ(engine::allocations() - before, 0);
  }
}

TEST(SteadyState, SgdAllocatesNothing) {
  Sgd optimizer{parameters(), {.nesterov = true, .weight_decay = 0.1}};
  expect_no_allocation(optimizer);
}

TEST(SteadyState, LarsAllocatesNothing) {
  Lars optimizer{parameters(), {.weight_decay = 0.1}};
  expect_no_allocation(optimizer);
}

}  // namespace
}  // namespace sluice::train
