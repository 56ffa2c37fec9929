#include <gtest/gtest.h>

#include <atomic>

#include "sluice/torch/data_parallel.h"
#include "tests/torch/parameters.h"
#include "tests/torch/torch_ranks.h"
#include "tests/torch/training.h"

namespace sluice {
namespace {

using torch::Tensor;

TEST(DataParallelErrors, ParametersThatDifferBetweenRanksAreNamedToAll) {
  std::atomic<int> named{0};
  run_torch_ranks(3, [&](Communicator& comm) {
    Parameters parameters;
    parameters.insert("same", parameter(ramp({10})));
    parameters.insert("odd one", parameter(ramp({comm.rank() == 1 ? 11 : 10})));
    const Status status = thrown_by([&] { DataParallel{parameters, comm}; });
    EXPECT_EQ(status.code(), Code::Mismatch) << status.message();
    if (status.message().find("odd one") != std::string::npos) ++named;
  });
  EXPECT_EQ(named, 3);
}

TEST(DataParallelErrors, ParametersThatComeOrChangeLaterAreOneClearError) {
  run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Linear model{3, 3};
    fill(*model);
    model->bias.set_requires_grad(false);
    DataParallel parallel{*model, comm};
    const auto complaint = [&] { return thrown_by([&] { parallel.finish(); }).message(); };
    model->register_parameter("extra", torch::ones({2}));
    EXPECT_NE(complaint().find("'extra'"), std::string::npos) << complaint();
    model->bias.set_requires_grad(true);
    EXPECT_NE(complaint().find("'bias', 'extra'"), std::string::npos) << complaint();
    comm.barrier();
  });
  run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Linear model{3, 3};
    fill(*model);
    DataParallel parallel{*model, comm};
    model->to(torch::kDouble);
    const Status status = thrown_by([&] { parallel.finish(); });
    EXPECT_NE(status.message().find("'weight'"), std::string::npos) << status.message();
    comm.barrier();
  });
}

TEST(DataParallelErrors, NothingToTrainIsAnError) {
  run_torch_ranks(1, [](Communicator& comm) {
    EXPECT_EQ(thrown_by([&] { DataParallel{Parameters{}, comm}; }).code(), Code::InvalidArgument);
    Parameters complex;
    complex.insert("c", torch::zeros({2}, torch::kComplexFloat).set_requires_grad(true));
    const Status status = thrown_by([&] { DataParallel{complex, comm}; });
    EXPECT_NE(status.message().find("'c'"), std::string::npos) << status.message();
  });
}

TEST(DataParallelErrors, ASecondGradientBeforeFinishIsAnErrorOfBackward) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    parameters.insert("w", parameter(ramp({10})));
    DataParallel parallel{parameters, comm};
    parameters["w"].sum().backward();
    const Status status = thrown_by([&] { parameters["w"].sum().backward(); });
    EXPECT_EQ(status.code(), Code::InvalidArgument);
    EXPECT_NE(status.message().find("'w' got a second gradient"), std::string::npos);
    comm.barrier();
  });
}

TEST(DataParallelErrors, APeerThatLeavesIsAnErrorOfBackwardOrFinish) {
  run_torch_ranks(3, [](Communicator& comm) {
    Parameters parameters;
    for (const char* const name : {"a", "b"}) parameters.insert(name, parameter(ramp({100'000})));
    DataParallel parallel{parameters, comm, {.theta = 1}};
    const auto step = [&] {
      (parameters["a"].sum() + parameters["b"].sum()).backward();
      parallel.finish();
    };
    step();
    if (comm.rank() == 1) return;
    const Status lost = thrown_by(step);
    EXPECT_EQ(lost.code(), Code::PeerLost) << lost.message();
    EXPECT_NE(lost.message().find("rank 1"), std::string::npos) << lost.message();
    const Status still = thrown_by(step);
    EXPECT_EQ(still.code(), Code::PeerLost) << still.message();
  });
}

}  // namespace
}  // namespace sluice
