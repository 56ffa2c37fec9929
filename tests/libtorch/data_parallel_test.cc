#include "sluice/torch/data_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>

#include "sluice/log.h"
#include "tests/libtorch/parameters.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

// Collects all log messages while it exists.
class Log {
 public:
  Log() {
    set_log([this](LogLevel, const std::string& sentence) {
      const std::lock_guard lock{mutex_};
      sentences_.push_back(sentence);
    });
  }
  ~Log() { set_log(nullptr); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  int count(const std::string& part) const {
    return static_cast<int>(std::count_if(
        sentences_.begin(), sentences_.end(),
        [&](const std::string& each) { return each.find(part) != std::string::npos; }));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> sentences_;
};

TEST(DataParallel, GradientsKeepTheirAddressHoweverTheyAreCleared) {
  for (const Clearing clearing : kClearings) {
    run_torch_ranks(2, [&](Communicator& comm) {
      Parameters parameters;
      parameters.insert("w", parameter(ramp({40, 3})));
      DataParallel parallel{parameters, comm};
      const void* address = nullptr;
      for (int step = 0; step < 4; ++step) {
        clear(parameters, clearing);
        (parameters["w"] * (comm.rank() + step)).sum().backward();
        parallel.finish();
        const Tensor gradient = parameters["w"].grad();
        EXPECT_TRUE(same(gradient, torch::full({40, 3}, 0.5F + static_cast<float>(step))));
        if (step > 0) {
          EXPECT_EQ(gradient.data_ptr(), address);
        }
        address = gradient.data_ptr();
      }
    });
  }
}

// Old programs clear gradients like this; libtorch does not count it as a change.
TEST(DataParallel, GradientsMayBeClearedThroughTheirData) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    parameters.insert("w", parameter(ramp({40, 3})));
    parameters.insert("rows", parameter(ramp({3, 2})));
    DataParallel parallel{parameters, comm};
    const Tensor chosen = torch::tensor({comm.rank(), comm.rank()});
    for (int step = 0; step < 3; ++step) {
      for (const auto& item : parameters) {
        if (item.value().grad().defined()) item.value().grad().data().zero_();
      }
      ((parameters["w"] * (comm.rank() + step)).sum() +
       torch::embedding(parameters["rows"], chosen, -1, false, /*sparse=*/true).sum())
          .backward();
      parallel.finish();
      EXPECT_TRUE(
          same(parameters["w"].grad(), torch::full({40, 3}, 0.5F + static_cast<float>(step))));
      EXPECT_TRUE(
          same(parameters["rows"].grad(), torch::tensor({{1.F, 1.F}, {1.F, 1.F}, {0.F, 0.F}})));
    }
  });
}

TEST(DataParallel, GradientsHaveTheStridesOfTheirParameters) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    parameters.insert("channels last",
                      parameter(ramp({4, 3, 2, 5}).contiguous(torch::MemoryFormat::ChannelsLast)));
    parameters.insert("transposed", parameter(ramp({6, 7}).t()));
    DataParallel parallel{parameters, comm};
    for (const Clearing clearing : {Clearing::ToNone, Clearing::Zero, Clearing::ZeroDetached,
                                    Clearing::ToNone, Clearing::ZeroDetached}) {
      clear(parameters, clearing);
      const double factor = 1.0 + 2 * comm.rank();
      ((parameters[0].value().square().sum() + parameters[1].value().square().sum()) * factor)
          .backward();
      parallel.finish();
      for (const auto& item : parameters) {
        EXPECT_EQ(item.value().grad().strides(), item.value().strides()) << item.key();
        EXPECT_TRUE(same(item.value().grad(), (item.value() * 4).detach())) << item.key();
      }
    }
  });
}

TEST(DataParallel, FrozenParametersAreIgnored) {
  run_torch_ranks(2, [](Communicator& comm) {
    Network model{Setting{}, std::nullopt};
    model->first->weight.set_requires_grad(false);
    Network alone{Setting{}, std::nullopt};
    alone->forward(samples(torch::kDouble, 0, 0, 6).inputs).sum().backward();
    DataParallel parallel{*model, comm};
    const Samples part = samples(torch::kDouble, 0, 3 * comm.rank(), 3 * comm.rank() + 3);
    (model->forward(part.inputs).sum() * 2).backward();
    parallel.finish();
    EXPECT_FALSE(model->first->weight.grad().defined());
    for (const auto& item : model->named_parameters()) {
      if (item.key() == "first.weight") continue;
      EXPECT_TRUE(
          torch::allclose(item.value().grad(), alone->named_parameters()[item.key()].grad()))
          << item.key();
    }
  });
}

// An optimizer's zero_grad() throws in libtorch 1.13 if a gradient is a view, and resets it in 2.x.
template <class Optimizer, class Options>
void optimizers_may_clear(Communicator& comm, bool double_buffering) {
  Parameters parameters;
  parameters.insert("channels last",
                    parameter(ramp({4, 3, 2, 5}).contiguous(torch::MemoryFormat::ChannelsLast)));
  parameters.insert("bias", parameter(ramp({7})));
  Optimizer optimizer{parameters.values(), Options{0.0}};  // weights stay, so gradients are known
  DataParallel parallel{parameters, comm, {.double_buffering = double_buffering}};
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    const double factor = (1 + step) * (1 + 2 * comm.rank());
    ((parameters[0].value().square().sum() + parameters[1].value().square().sum()) * factor)
        .backward();
    if (parallel.finish().empty) continue;
    optimizer.step();
    for (const auto& item : parameters) {
      const int of = double_buffering ? step : step + 1;
      EXPECT_EQ(item.value().grad().strides(), item.value().strides()) << item.key();
      EXPECT_TRUE(same(item.value().grad(), (item.value() * 4 * of).detach())) << item.key();
    }
  }
}

TEST(DataParallel, OptimizersMayClearGradients) {
  for (const bool double_buffering : {false, true}) {
    run_torch_ranks(2, [&](Communicator& comm) {
      optimizers_may_clear<torch::optim::SGD, torch::optim::SGDOptions>(comm, double_buffering);
      optimizers_may_clear<torch::optim::Adam, torch::optim::AdamOptions>(comm, double_buffering);
    });
  }
}

struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    in = register_module("in", torch::nn::Linear{4, 4});
    out = register_module("out", torch::nn::Linear{torch::nn::LinearOptions{4, 4}.bias(false)});
    out->weight = out->register_parameter("shared", in->weight);
    fill(*this);
  }
  Tensor forward(const Tensor& x) { return out->forward(torch::tanh(in->forward(x))); }
  torch::nn::Linear in{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Tied);

TEST(DataParallel, SharedParametersCountOnce) {
  Tied alone;
  alone->forward(ramp({6, 4}) / 20).sum().backward();
  run_torch_ranks(2, [&](Communicator& comm) {
    Tied model;
    DataParallel parallel{*model, comm};
    const Tensor part = (ramp({6, 4}) / 20).narrow(0, 3 * comm.rank(), 3);
    (model->forward(part).sum() * 2).backward();
    parallel.finish();
    EXPECT_TRUE(torch::allclose(model->in->weight.grad(), alone->in->weight.grad()));
    EXPECT_TRUE(torch::allclose(model->in->bias.grad(), alone->in->bias.grad()));
  });
}

TEST(DataParallel, TypesMayBeMixed) {
  constexpr torch::ScalarType kTypes[] = {torch::kFloat, torch::kDouble, torch::kHalf,
                                          torch::kBFloat16};
  run_torch_ranks(3, [&](Communicator& comm) {
    Parameters parameters;
    for (const torch::ScalarType type : kTypes) {
      for (const std::int64_t size : {3, 33}) {
        parameters.insert(c10::str(type, size), parameter(ramp({size}).to(type)));
      }
    }
    DataParallel parallel{parameters, comm};
    for (int step = 0; step < 3; ++step) {
      clear(parameters, kClearings[step]);
      Tensor loss = torch::zeros({}, torch::kDouble);
      for (const auto& item : parameters)
        loss = loss + (item.value().to(torch::kDouble) * (1 + step + comm.rank())).sum();
      loss.backward();
      parallel.finish();
      for (const auto& item : parameters) {
        EXPECT_TRUE(same(item.value().grad(), torch::full_like(item.value(), 2 + step)))
            << item.key();
      }
    }
  });
}

TEST(DataParallel, SparseGradientsBecomeDense) {
  run_torch_ranks(2, [](Communicator& comm) {
    torch::nn::Embedding embedding{torch::nn::EmbeddingOptions{5, 2}.sparse(true)};
    fill(*embedding);
    DataParallel parallel{*embedding, comm};
    embedding->forward(torch::tensor({comm.rank(), 3})).sum().backward();
    parallel.finish();
    EXPECT_TRUE(same(embedding->weight.grad(),
                     torch::tensor({{.5F, .5F}, {.5F, .5F}, {0.F, 0.F}, {1.F, 1.F}, {0.F, 0.F}})));
  });
}

// Every rank uses "all", and the branch of its number: "zero" or "one" (in step 1 the other one).
// No rank uses "never"; all use "late" in the last step only.
TEST(DataParallel, RanksMayTakeDifferentBranches) {
  for (const Clearing clearing : kClearings) {
    Log log;
    run_torch_ranks(2, [&](Communicator& comm) {
      Parameters parameters;
      for (const char* const name : {"all", "zero", "one", "never", "late"})
        parameters.insert(name, parameter(ramp({50})));
      DataParallel parallel{parameters, comm, {.theta = 1}};
      for (int step = 0; step < 4; ++step) {
        clear(parameters, clearing);
        const bool first_branch = (comm.rank() == 0) != (step == 1);
        Tensor loss = parameters["all"].sum() + parameters[first_branch ? "zero" : "one"].sum() * 8;
        if (step == 3) loss = loss + parameters["late"].sum();
        loss.backward();
        parallel.finish();
        EXPECT_TRUE(same(parameters["all"].grad(), torch::ones({50})));
        EXPECT_TRUE(same(parameters["zero"].grad(), torch::full({50}, 4.F)));
        EXPECT_TRUE(same(parameters["one"].grad(), torch::full({50}, 4.F)));
        EXPECT_FALSE(parameters["never"].grad().defined());
        if (step == 3) {
          EXPECT_TRUE(same(parameters["late"].grad(), torch::ones({50})));
        }
      }
      if (clearing == Clearing::ToNone) return;
      // zero_grad() clears a gradient that was handed out before, and finish() leaves it zero.
      clear(parameters, clearing);
      parameters["all"].sum().backward();
      parallel.finish();
      EXPECT_TRUE(same(parameters["late"].grad(), torch::zeros({50})));
      EXPECT_TRUE(same(parameters["one"].grad(), torch::zeros({50})));
    });
    for (const char* const name : {"\"zero\"", "\"one\"", "\"never\"", "\"late\""})
      EXPECT_EQ(log.count(name), 1) << name;
    EXPECT_EQ(log.count("\"all\""), 0);
  }
}

TEST(DataParallel, NoSyncAddsUpGradientsForTheNextBackwardToSend) {
  for (const Clearing clearing : kClearings) {
    run_torch_ranks(2, [&](Communicator& comm) {
      Parameters parameters;
      for (const char* const name : {"always", "first part only", "last part only"})
        parameters.insert(name, parameter(ramp({10})));
      DataParallel parallel{parameters, comm, {.theta = 1}};
      for (int step = 0; step < 3; ++step) {
        clear(parameters, clearing);
        {
          const auto pause = parallel.no_sync();
          for (int part = 0; part < 3; ++part)
            (parameters[0].value().sum() * (1 + comm.rank()) + parameters[1].value().sum())
                .backward();
          EXPECT_EQ(thrown_by([&] { parallel.finish(); }).code(), Code::InvalidArgument);
        }
        (parameters[0].value().sum() + parameters[2].value().sum() * comm.rank()).backward();
        parallel.finish();
        EXPECT_TRUE(same(parameters[0].value().grad(), torch::full({10}, 5.5F)));
        EXPECT_TRUE(same(parameters[1].value().grad(), torch::full({10}, 3.F)));
        EXPECT_TRUE(same(parameters[2].value().grad(), torch::full({10}, 0.5F)));
      }
    });
  }
}

TEST(DataParallel, WeightsAndBuffersThatDifferBecomeThoseOfRankZero) {
  for (const bool differ : {false, true}) {
    Log log;
    run_torch_ranks(3, [&](Communicator& comm) {
      const double own = differ ? comm.rank() : 0;
      torch::nn::BatchNorm1d model{torch::nn::BatchNormOptions{7}};
      fill(*model, 1 + own);
      model->running_mean.fill_(own);
      model->num_batches_tracked.fill_(own);
      const Tensor flags =
          model->register_buffer("flags", torch::full({3}, own != 0, torch::kBool));
      model->bias.set_requires_grad(false);
      torch::nn::BatchNorm1d first{torch::nn::BatchNormOptions{7}};
      fill(*first, 1);
      DataParallel parallel{*model, comm};
      EXPECT_TRUE(same(model->weight, first->weight));
      EXPECT_TRUE(same(model->bias, first->bias));
      EXPECT_TRUE(same(model->running_mean, torch::zeros({7})));
      EXPECT_EQ(model->num_batches_tracked.item<int>(), 0);
      EXPECT_FALSE(flags.any().item<bool>());
    });
    EXPECT_EQ(log.count("weights differed"), differ ? 1 : 0);
  }
}

TEST(DataParallel, AStepWithAnOverflowLeavesNoGradientAtAnyRank) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters parameters;
    parameters.insert("w", parameter(ramp({10})));
    DataParallel parallel{parameters, comm, {.loss_scale = {.enabled = true, .initial = 64}}};
    EXPECT_EQ(parallel.loss_scale(), 64);
    const double factor = comm.rank() == 1 ? std::numeric_limits<double>::infinity() : 1;
    (parameters["w"].sum() * factor * parallel.loss_scale()).backward();
    EXPECT_TRUE(parallel.finish().skipped);
    EXPECT_FALSE(parameters["w"].grad().defined());
    EXPECT_EQ(parallel.loss_scale(), 32);
    (parameters["w"].sum() * parallel.loss_scale()).backward();
    EXPECT_FALSE(parallel.finish().skipped);
    EXPECT_TRUE(same(parameters["w"].grad(), torch::ones({10})));
  });
}

TEST(DataParallel, RemovesItsHooksAndGradients) {
  for (const std::optional<Clearing> clearing :
       {std::optional<Clearing>{}, std::optional{Clearing::Zero},
        std::optional{Clearing::ZeroDetached}}) {
    run_torch_ranks(2, [&](Communicator& comm) {
      Parameters parameters;
      parameters.insert("w", parameter(ramp({10})));
      {
        DataParallel first{parameters, comm};
        DataParallel parallel = std::move(first);
        (parameters["w"].sum() * comm.rank()).backward();
        parallel.finish();
        EXPECT_TRUE(same(parameters["w"].grad(), torch::full({10}, 0.5F)));
        if (clearing) clear(parameters, *clearing);
      }
      EXPECT_FALSE(parameters["w"].grad().defined());
      (parameters["w"].sum() * comm.rank()).backward();
      EXPECT_TRUE(same(parameters["w"].grad(), torch::full({10}, static_cast<float>(comm.rank()))));
    });
  }
}

// The example of docs/libtorch.md: an epoch has every sample once, each epoch in another order.
TEST(DataParallel, RanksShareADataSet) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kSamples = 30;
  const auto data = torch::data::datasets::TensorDataset{torch::arange(kSamples)}.map(
      torch::data::transforms::Stack<torch::data::TensorExample>{});
  std::vector<std::vector<std::int64_t>> orders;
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t>& order = orders.emplace_back();
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      torch::data::samplers::DistributedRandomSampler sampler{kSamples, kRanks, rank};
      sampler.set_epoch(epoch);
      auto loader = torch::data::make_data_loader(data, sampler, 5);
      for (auto& batch : *loader) {
        for (std::int64_t i = 0; i < batch.data.size(0); ++i)
          order.push_back(batch.data[i].item<std::int64_t>());
      }
    }
  }
  EXPECT_NE(orders[0], orders[1]);
  for (std::vector<std::int64_t>& order : orders) {
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order.size(), kSamples);
    for (std::int64_t i = 0; i < kSamples; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

TEST(DataParallel, TwoModelsInOneProcess) {
  run_torch_ranks(2, [](Communicator& comm) {
    Parameters one;
    Parameters other;
    one.insert("w", parameter(ramp({10})));
    other.insert("v", parameter(ramp({3, 20})));
    DataParallel first{one, comm};
    DataParallel second{other, comm, {.double_buffering = true}};
    for (int step = 0; step < 3; ++step) {
      clear(one, Clearing::ToNone);
      clear(other, Clearing::Zero);
      (one["w"].sum() * comm.rank() + other["v"].sum() * step).backward();
      first.finish();
      second.finish();
      EXPECT_TRUE(same(one["w"].grad(), torch::full({10}, 0.5F)));
      if (step > 0) {
        EXPECT_TRUE(same(other["v"].grad(), torch::full({3, 20}, static_cast<float>(step - 1))));
      }
    }
  });
}

}  // namespace
}  // namespace sluice::libtorch
