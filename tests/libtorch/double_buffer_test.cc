#include <gtest/gtest.h>

#include "sluice/torch/data_parallel.h"
#include "tests/libtorch/parameters.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

// Step t applies the mean of step t - 1, which was computed at the weights of step t - 1.
NamedTensors train_one_step_late(Communicator& comm, bool to_none) {
  Network model{Setting{.type = torch::kFloat}, std::nullopt};
  torch::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions{0.1}.momentum(0.9)};
  std::vector<Tensor> pending;
  const auto apply = [&] {
    for (std::size_t i = 0; i < pending.size(); ++i)
      model->parameters()[i].mutable_grad() = pending[i];
    if (!pending.empty()) optimizer.step();
  };
  for (int step = 0; step < 6; ++step) {
    const Samples batch = samples(torch::kFloat, step, comm.rank() * 7, comm.rank() * 7 + 7);
    model->zero_grad(to_none);
    model->forward(batch.inputs).square().mean().backward();
    std::vector<Tensor> means;
    for (const Tensor& each : model->parameters()) {
      means.push_back(each.grad().clone());
      const Elements mean{means.back().data_ptr(), static_cast<std::size_t>(each.numel()),
                          DataType::F32};
      comm.all_reduce(mean, {.op = ReduceOp::Mean, .algorithm = "direct"}).wait();
    }
    apply();
    pending = means;
  }
  apply();
  return weights(*model);
}

TEST(DoubleBuffering, IsOneStepLateBitForBit) {
  for (const bool to_none : {false, true}) {
    for (const int ranks : {1, 2, 3}) {
      run_torch_ranks(ranks, [&](Communicator& comm) {
        Network model{Setting{.type = torch::kFloat}, std::nullopt};
        torch::optim::SGD optimizer{model->parameters(),
                                    torch::optim::SGDOptions{0.1}.momentum(0.9)};
        DataParallel parallel{
            *model, comm, {.theta = 900, .double_buffering = true, .algorithm = "direct"}};
        EXPECT_TRUE(parallel.flush().empty);
        for (int step = 0; step < 6; ++step) {
          const Samples batch = samples(torch::kFloat, step, comm.rank() * 7, comm.rank() * 7 + 7);
          model->zero_grad(to_none);
          model->forward(batch.inputs).square().mean().backward();
          EXPECT_EQ(parallel.finish().empty, step == 0);
          EXPECT_EQ(model->last->weight.grad().defined(), step > 0);
          optimizer.step();
        }
        EXPECT_FALSE(parallel.flush().empty);
        optimizer.step();
        EXPECT_TRUE(same_bits(weights(*model), train_one_step_late(comm, to_none)))
            << ranks << " ranks";
      });
    }
  }
}

TEST(DoubleBuffering, HandsOutUnusedGradientsAStepLate) {
  for (const Clearing clearing : kClearings) {
    run_torch_ranks(2, [&](Communicator& comm) {
      Parameters parameters;
      parameters.insert("always", parameter(ramp({10})));
      parameters.insert("odd steps", parameter(ramp({10})));
      DataParallel parallel{parameters, comm, {.double_buffering = true}};
      for (int step = 0; step < 6; ++step) {
        clear(parameters, clearing);
        Tensor loss = parameters[0].value().sum() * step;
        if (step % 2 == 1 && comm.rank() == 0) loss = loss + parameters[1].value().sum() * 2 * step;
        loss.backward();
        parallel.finish();
        if (step == 0) continue;
        const auto before = static_cast<float>(step - 1);
        EXPECT_TRUE(same(parameters[0].value().grad(), torch::full({10}, before)));
        const Tensor odd = parameters[1].value().grad();
        if (step % 2 == 0) {
          EXPECT_TRUE(same(odd, torch::full({10}, before)));
        } else if (clearing == Clearing::ToNone || step == 1) {
          EXPECT_FALSE(odd.defined());
        } else {  // zero at both ranks, although rank 0 has just computed a new gradient
          EXPECT_TRUE(same(odd, torch::zeros({10})));
        }
      }
    });
  }
}

TEST(DoubleBuffering, AParameterFrozenWhileInFlightGetsNoGradient) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    for (const char* const name : {"trained", "frozen"})
      parameters.insert(name, parameter(ramp({10})));
    DataParallel parallel{parameters, comm, {.double_buffering = true}};
    (parameters["trained"].sum() + parameters["frozen"].sum()).backward();
    EXPECT_TRUE(parallel.finish().empty);
    parameters["frozen"].set_requires_grad(false);
    (parameters["trained"].sum() * 3).backward();
    EXPECT_FALSE(parallel.finish().empty);
    EXPECT_TRUE(same(parameters["trained"].grad(), torch::ones({10})));
    EXPECT_FALSE(parameters["frozen"].grad().defined());
  });
}

}  // namespace
}  // namespace sluice::libtorch
