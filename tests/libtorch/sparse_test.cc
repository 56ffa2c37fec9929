// Compares sparse gradients and Sluice's optimizers with a naive computation of each element.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "libtorch/model_reducer.h"
#include "sluice/status.h"
#include "sluice/torch/data_parallel.h"
#include "sluice/torch/lars.h"
#include "sluice/torch/sgd.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;

constexpr int kRanks = 2;
constexpr std::int64_t kRows = 12;
constexpr std::int64_t kColumns = 16;
constexpr std::size_t kCount = kRows * kColumns;
constexpr std::size_t kChunk = 24;
constexpr double kDecay = 0.05;
constexpr double kRate = 0.1;
constexpr double kMomentum = 0.9;

// Returns a rank's gradient in a step. Some rows have larger values than others.
Tensor gradient_at(Rank rank, int step) {
  const Tensor numbers = torch::arange(kRows * kColumns, torch::kFloat).view({kRows, kColumns});
  return torch::sin(numbers * 0.37 + static_cast<float>(rank * 2 + step)) *
         (1 + numbers.remainder(5) + 3 * ((numbers / kColumns + step).remainder(3) < 1));
}

GradientOptions sparse_options() {
  return {.sparse = {.sparsity = 0.6, .chunk = kChunk, .dense_steps = 2}};
}

struct Model {
  Model() {
    parameters.insert("matrix", torch::ones({kRows, kColumns}).set_requires_grad(true));
    parameters.insert("bias", torch::ones({kColumns}).set_requires_grad(true));
  }
  Tensor matrix() { return parameters["matrix"]; }
  Tensor bias() { return parameters["bias"]; }
  void backward(Rank rank, int step) {
    for (const auto& item : parameters) item.value().mutable_grad().reset();
    ((matrix() * gradient_at(rank, step)).sum() + bias().sum() * (rank + 1)).backward();
  }
  torch::OrderedDict<std::string, Tensor> parameters;
};

std::vector<bool> arrived(const ReceivedGradient& received) {
  std::vector<bool> elements(kCount, received.whole);
  if (received.whole) return elements;
  for (const gradient::GradientPart& part : received.parts) {
    for (std::size_t i = part.first; i < part.first + part.count; ++i) elements[i] = true;
  }
  return elements;
}

// A naive residual, by element.
struct NaiveResidual {
  std::vector<double> sums = std::vector<double>(kCount);  // of g + wd w, over ranks and steps
  std::vector<int> steps = std::vector<int>(kCount);
};

TEST(Sparse, UpdatesTheElementsThatArriveAndKeepsTheRest) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    ModelReducer parallel{model.parameters, comm, sparse_options()};
    Sgd optimizer{model.parameters.values(),
                  {.lr = kRate, .momentum = kMomentum, .weight_decay = kDecay}};
    parallel.attach(optimizer);

    std::vector<double> weights(kCount, 1);
    std::vector<double> velocities(kCount);
    NaiveResidual residual;
    int partial = 0;
    for (int step = 0; step < 20; ++step) {
      for (Rank rank = 0; rank < kRanks; ++rank) {
        const Tensor own = gradient_at(rank, step).to(torch::kDouble).flatten();
        for (std::size_t i = 0; i < kCount; ++i)
          residual.sums[i] +=
              own[static_cast<std::int64_t>(i)].item<double>() + kDecay * weights[i];
      }
      model.backward(comm.rank(), step);
      parallel.finish();
      optimizer.step();

      const ReceivedGradient received = parallel.received(model.matrix());
      partial += received.whole ? 0 : 1;
      const std::vector<bool> has_arrived = arrived(received);
      for (std::size_t i = 0; i < kCount; ++i) {
        if (!has_arrived[i]) continue;
        velocities[i] = kMomentum * velocities[i] + residual.sums[i] / kRanks;
        weights[i] -= kRate * velocities[i];
        residual.sums[i] = 0;
      }
      const Tensor expected = torch::tensor(weights, torch::kDouble).view({kRows, kColumns});
      EXPECT_TRUE(torch::allclose(model.matrix().to(torch::kDouble), expected, 1e-4, 1e-4))
          << "step " << step;
      EXPECT_TRUE(parallel.received(model.bias()).whole);
      EXPECT_FALSE(equalise({{"matrix", model.matrix().detach()}}, comm));
    }
    EXPECT_GT(partial, 10);
  });
}

// For elements that arrive, w -= lr s r with s = eta |w| / (|g| + eps). g has the latest received
// value of each element, divided by its number of steps. In the first sparse step, some of these
// values are from the dense step before.
TEST(Sparse, LarsUsesTheLatestNormOfEachPart) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    constexpr double kEta = 0.02;
    Model model;
    ModelReducer parallel{model.parameters, comm, sparse_options()};
    Lars optimizer{model.parameters.values(),
                   {.lr = kRate, .momentum = 0, .weight_decay = 0, .eta = kEta}};
    parallel.attach(optimizer);
    std::vector<double> weights(kCount, 1);
    std::vector<double> last(kCount);
    NaiveResidual residual;
    for (int step = 0; step < 12; ++step) {
      for (Rank rank = 0; rank < kRanks; ++rank) {
        const Tensor own = gradient_at(rank, step).to(torch::kDouble).flatten();
        for (std::size_t i = 0; i < kCount; ++i)
          residual.sums[i] += own[static_cast<std::int64_t>(i)].item<double>();
      }
      for (int& steps : residual.steps) ++steps;
      model.backward(comm.rank(), step);
      parallel.finish();
      optimizer.step();

      const std::vector<bool> has_arrived = arrived(parallel.received(model.matrix()));
      double squared_weights = 0;
      double squared_gradient = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        if (has_arrived[i]) last[i] = residual.sums[i] / kRanks / residual.steps[i];
        squared_gradient += last[i] * last[i];
        squared_weights += weights[i] * weights[i];
      }
      const double scale = kEta * std::sqrt(squared_weights / squared_gradient);
      for (std::size_t i = 0; i < kCount; ++i) {
        if (!has_arrived[i]) continue;
        weights[i] -= kRate * scale * std::exchange(residual.sums[i], 0) / kRanks;
        residual.steps[i] = 0;
      }
      const Tensor expected = torch::tensor(weights, torch::kDouble).view({kRows, kColumns});
      EXPECT_TRUE(torch::allclose(model.matrix().to(torch::kDouble), expected, 1e-5, 1e-6))
          << "step " << step;
    }
  });
}

void expect_refusal(DataParallel& parallel, const std::string& part) {
  const Status status = thrown_by([&] { parallel.finish(); });
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(Sparse, WithoutAnAttachedOptimizerFinishThrows) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    model.backward(comm.rank(), 0);
    expect_refusal(parallel, "attach()");
    comm.barrier();
  });
}

TEST(Sparse, ADestroyedOptimizerIsNoLongerAttached) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    {
      Sgd first{model.parameters.values()};
      parallel.attach(first);
      model.backward(comm.rank(), 0);
      parallel.finish();
      first.step();
    }
    Sgd second{model.parameters.values()};
    model.backward(comm.rank(), 1);
    expect_refusal(parallel, "attach()");
    parallel.attach(second);
    EXPECT_FALSE(parallel.finish().empty);
  });
}

TEST(Sparse, EveryMatrixNeedsAnAttachedOptimizer) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    {
      Sgd all{model.parameters.values()};
      parallel.attach(all);
    }
    Sgd some{{model.bias()}};
    parallel.attach(some);
    model.backward(comm.rank(), 0);
    expect_refusal(parallel, "'matrix'");
    // A bias is always sent whole.
    Sgd matrices{{model.matrix()}};
    parallel.attach(matrices);
    options_of(some).source = nullptr;
    EXPECT_FALSE(parallel.finish().empty);
  });
}

TEST(Sparse, AnOptimizerMayOutliveItsReducer) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    Sgd optimizer{model.parameters.values(), {.lr = kRate, .momentum = 0}};
    std::optional<ModelReducer> parallel;
    parallel.emplace(model.parameters, comm, sparse_options());
    parallel->attach(optimizer);
    for (int step = 0; step < 5; ++step) {
      model.backward(comm.rank(), step);
      parallel->finish();
      optimizer.step();
    }
    EXPECT_FALSE(parallel->received(model.matrix()).whole);
    const Tensor before = model.matrix().detach().clone();
    parallel.reset();
    optimizer.step();
    EXPECT_TRUE(torch::equal(model.matrix(), before));

    parallel.emplace(model.parameters, comm);
    model.backward(comm.rank(), 5);
    parallel->finish();
    optimizer.step();
    const Tensor mean = (gradient_at(0, 5) + gradient_at(1, 5)) / kRanks;
    EXPECT_TRUE(torch::allclose(model.matrix(), before - kRate * mean, 1e-5, 1e-5));
  });
}

// The residual of the frozen parameter still arrives.
TEST(Sparse, AParameterThatIsFrozenLaterDoesNotChange) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    Sgd optimizer{model.parameters.values(), {.lr = kRate, .weight_decay = kDecay}};
    parallel.attach(optimizer);
    Tensor before;
    for (int step = 0; step < 12; ++step) {
      if (step == 6) {
        model.matrix().set_requires_grad(false);
        before = model.matrix().clone();
      }
      model.backward(comm.rank(), step);
      parallel.finish();
      optimizer.step();
      if (step < 6) continue;
      EXPECT_FALSE(model.matrix().grad().defined()) << "step " << step;
      EXPECT_TRUE(torch::equal(model.matrix(), before)) << "step " << step;
      EXPECT_TRUE(model.bias().grad().defined()) << "step " << step;
    }
  });
}

TEST(Sparse, DenseStepsHaveTheBitsOfADenseTraining) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    std::vector<NamedTensors> ends;
    for (const bool sparse : {false, true}) {
      Model model;
      GradientOptions options;
      if (sparse) options.sparse = {.sparsity = 0.5, .chunk = kChunk, .dense_steps = 100};
      DataParallel parallel{model.parameters, comm, options};
      Lars optimizer{model.parameters.values(), {.lr = 0.5, .weight_decay = kDecay}};
      parallel.attach(optimizer);
      for (int step = 0; step < 5; ++step) {
        model.backward(comm.rank(), step);
        parallel.finish();
        optimizer.step();
      }
      ends.push_back({{"matrix", model.matrix().detach().clone()}});
    }
    EXPECT_TRUE(same_bits(ends[0], ends[1]));
  });
}

}  // namespace
}  // namespace sluice::libtorch
