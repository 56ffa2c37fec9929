#include <gtest/gtest.h>

#include <atomic>
#include <sstream>

#include "sluice/torch/data_parallel.h"
#include "tests/libtorch/parameters.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

TEST(DataParallelErrors, EveryRankNamesParametersThatDiffer) {
  std::atomic<int> named{0};
  run_torch_ranks(3, [&](Communicator& comm) {
    Parameters parameters;
    parameters.insert("same", parameter(ramp({10})));
    parameters.insert("different", parameter(ramp({comm.rank() == 1 ? 11 : 10})));
    const Status status = thrown_by([&] { DataParallel{parameters, comm}; });
    EXPECT_EQ(status.code(), Code::Mismatch) << status.message();
    if (status.message().find("different") != std::string::npos) ++named;
  });
  EXPECT_EQ(named, 3);
}

// Returns the error of finish() for a model that was changed after DataParallel was made.
template <class Change>
Status after_change(Communicator& comm, const Change& change) {
  torch::nn::Linear model{3, 3};
  fill(*model);
  DataParallel parallel{*model, comm};
  change(model);
  const Status status = thrown_by([&] { parallel.finish(); });
  comm.barrier();
  return status;
}

TEST(DataParallelErrors, ParametersAddedOrChangedLaterAreAnError) {
  run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Linear model{3, 3};
    fill(*model);
    model->bias.set_requires_grad(false);
    DataParallel parallel{*model, comm};
    const auto message_of_finish = [&] { return thrown_by([&] { parallel.finish(); }).message(); };
    model->register_parameter("extra", torch::ones({2}));
    EXPECT_NE(message_of_finish().find("'extra'"), std::string::npos) << message_of_finish();
    model->bias.set_requires_grad(true);
    EXPECT_NE(message_of_finish().find("'bias', 'extra'"), std::string::npos)
        << message_of_finish();
    comm.barrier();
  });
  run_torch_ranks(2, [](Communicator& comm) {
    const Status status = after_change(comm, [](auto& model) { model->to(torch::kDouble); });
    EXPECT_NE(status.message().find("'weight'"), std::string::npos) << status.message();
  });
}

// torch::load() replaces the memory of a tensor, which removes its hook.
TEST(DataParallelErrors, ParametersLoadedLaterAreAnError) {
  std::stringstream file;
  torch::nn::Linear saved{3, 3};
  torch::save(saved, file);
  const std::string bytes = file.str();
  run_torch_ranks(2, [&](Communicator& comm) {
    const Status status = after_change(comm, [&](auto& model) {
      std::stringstream own{bytes};
      torch::load(model, own);
      model->forward(ramp({2, 3})).sum().backward();
    });
    EXPECT_EQ(status.code(), Code::InvalidArgument) << status.message();
    EXPECT_NE(status.message().find("'weight' was loaded"), std::string::npos) << status.message();
  });
  run_torch_ranks(2, [](Communicator& comm) {
    const Status status = after_change(comm, [](auto& model) {
      model->to(torch::kDouble);
      model->to(torch::kFloat);
      model->forward(ramp({2, 3})).sum().backward();
    });
    EXPECT_NE(status.message().find("'weight' was"), std::string::npos) << status.message();
  });
}

TEST(DataParallelErrors, AParameterMayBeFrozenLater) {
  run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Linear model{3, 3};
    fill(*model);
    DataParallel parallel{*model, comm};
    model->bias.set_requires_grad(false);
    model->forward(ramp({2, 3})).sum().backward();
    parallel.finish();
    EXPECT_TRUE(model->weight.grad().defined());
    EXPECT_FALSE(model->bias.grad().defined());
  });
}

// libtorch then drops the parameter's gradient, but still calls the hook.
TEST(DataParallelErrors, AParameterMayBeFrozenBetweenForwardAndBackward) {
  for (const Clearing clearing : kClearings) {
    run_torch_ranks(2, [&](Communicator& comm) {
      torch::nn::Linear model{3, 3};
      fill(*model);
      DataParallel parallel{*model, comm};
      model->forward(ramp({2, 3})).sum().backward();
      parallel.finish();
      clear(model->named_parameters(), clearing);
      const Tensor loss = model->forward(ramp({2, 3})).sum();
      model->bias.set_requires_grad(false);
      loss.backward();
      parallel.finish();
      EXPECT_TRUE(same(model->weight.grad(), torch::tensor({5.F, 7.F, 9.F}).expand({3, 3})));
      EXPECT_FALSE(model->bias.grad().defined());
    });
  }
}

// If strides differed, the sum would add different elements of the ranks.
TEST(DataParallelErrors, EveryRankNamesStridesThatDiffer) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    const Tensor values = ramp({4, 3, 2, 5});
    const Tensor last = values.contiguous(torch::MemoryFormat::ChannelsLast);
    parameters.insert("w", parameter(comm.rank() == 0 ? last : values));
    const Status status = thrown_by([&] { DataParallel{parameters, comm}; });
    EXPECT_EQ(status.code(), Code::Mismatch) << status.message();
    EXPECT_NE(status.message().find("rank 0 has \"w\" of 120 f32 in strides of 30, 1, 15, 3, rank "
                                    "1 has \"w\" of 120 f32"),
              std::string::npos)
        << status.message();
  });
}

TEST(DataParallelErrors, EveryRankNamesBuffersThatDiffer) {
  for (const Rank odd : {0, 1, 2}) {
    run_torch_ranks(3, [&](Communicator& comm) {
      torch::nn::Linear model{3, 3};
      fill(*model);
      if (comm.rank() == odd) model->register_buffer("only one has it", torch::ones({5}));
      model->register_buffer("all have it", torch::ones({5}));
      const Status status = thrown_by([&] { DataParallel{*model, comm}; });
      EXPECT_EQ(status.code(), Code::Mismatch) << status.message();
      EXPECT_NE(status.message().find("'only one has it' of Float [5]"), std::string::npos)
          << status.message();
    });
  }
}

TEST(DataParallelErrors, BuffersThatAreNotDenseDoNotChange) {
  run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Linear model{3, 3};
    fill(*model, 1 + comm.rank());
    model->register_buffer("edges", torch::eye(3).to_sparse());
    const DataParallel parallel{*model, comm};
    EXPECT_TRUE(torch::equal(model->named_buffers()["edges"].to_dense(), torch::eye(3)));
    EXPECT_FALSE(equalise({{"weight", model->weight.detach()}}, comm));
  });
}

TEST(DataParallelErrors, FlushBetweenBackwardAndFinishIsAnError) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    parameters.insert("w", parameter(ramp({10})));
    DataParallel parallel{parameters, comm, {.double_buffering = true}};
    const auto flushed = [&] { return thrown_by([&] { parallel.flush(); }).code(); };
    for (int step = 1; step < 4; ++step) {
      clear(parameters, Clearing::ToNone);
      {
        const auto pause = parallel.no_sync();
        (parameters["w"].sum() * step).backward();
        EXPECT_EQ(flushed(), Code::InvalidArgument);
      }
      (parameters["w"].sum() * step).backward();
      EXPECT_EQ(flushed(), Code::InvalidArgument);
      parallel.finish();
    }
    EXPECT_EQ(flushed(), Code::Ok);
    EXPECT_TRUE(same(parameters["w"].grad(), torch::full({10}, 6.F)));
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

TEST(DataParallelErrors, AGradientOnTopOfAMeanIsAnErrorOfBackward) {
  const GradientOptions ways[] = {{},
                                  {.wire = WireType::F16, .force_wire = true},
                                  {.double_buffering = true},
                                  {.loss_scale = {.enabled = true, .initial = 64}}};
  for (const GradientOptions& options : ways) {
    run_torch_ranks(2, [&](Communicator& comm) {
      Parameters parameters;
      parameters.insert("w", parameter(ramp({10})));
      DataParallel parallel{parameters, comm, options};
      const auto backward = [&] { (parameters["w"].sum() * parallel.loss_scale()).backward(); };
      backward();
      if (parallel.finish().empty) {
        backward();  // no error: there is no mean yet
        parallel.finish();
      }
      for (const Clearing clearing : kClearings) {
        for (int again = 0; again < 2; ++again) {
          torch::nn::utils::clip_grad_norm_(parameters.values(), 1.0);
          const Status status = thrown_by(backward);
          EXPECT_EQ(status.code(), Code::InvalidArgument);
          EXPECT_NE(status.message().find("'w' got a gradient on top"), std::string::npos)
              << status.message();
        }
        clear(parameters, clearing);
        backward();
        parallel.finish();
        EXPECT_TRUE(same(parameters["w"].grad(), torch::ones({10})));
      }
      if (parallel.flush().empty) return;
      EXPECT_EQ(thrown_by(backward).code(), Code::InvalidArgument);
    });
  }
}

// Under no_sync(), gradients may be added to a mean. The sum may be cleared, but not sent.
TEST(DataParallelErrors, NoSyncAddsUpFromZero) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    parameters.insert("w", parameter(ramp({10})));
    DataParallel parallel{parameters, comm};
    const auto backward = [&] { parameters["w"].sum().backward(); };
    const auto paused = [&] {
      const auto pause = parallel.no_sync();
      backward();
      backward();
    };
    backward();
    parallel.finish();
    paused();
    EXPECT_EQ(thrown_by(backward).code(), Code::InvalidArgument);
    for (const Clearing clearing : kClearings) {
      clear(parameters, clearing);
      backward();
      parallel.finish();
      EXPECT_TRUE(same(parameters["w"].grad(), torch::ones({10})));
      paused();
    }
    EXPECT_EQ(thrown_by([&] { parallel.finish(); }).code(), Code::InvalidArgument);
    clear(parameters, Clearing::Zero);
    paused();
    backward();
    parallel.finish();
    EXPECT_TRUE(same(parameters["w"].grad(), torch::full({10}, 3.F)));
  });
}

TEST(DataParallelErrors, APeerThatExitsIsAnErrorOfBackwardOrFinish) {
  run_torch_ranks(3, [](Communicator& comm) {
    Parameters parameters;
    for (const char* const name : {"a", "b"}) parameters.insert(name, parameter(ramp({100'000})));
    DataParallel parallel{parameters, comm, {.theta = 1}};
    const auto step = [&] {
      clear(parameters, Clearing::ToNone);
      (parameters["a"].sum() + parameters["b"].sum()).backward();
      parallel.finish();
    };
    step();
    if (comm.rank() == 1) return;
    for (int again = 0; again < 3; ++again) {
      const Status lost = thrown_by(step);
      EXPECT_EQ(lost.code(), Code::PeerLost) << lost.message();
      EXPECT_NE(lost.message().find("rank 1"), std::string::npos) << lost.message();
    }
  });
}

}  // namespace
}  // namespace sluice::libtorch
