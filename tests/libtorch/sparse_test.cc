// Sparse gradients under sluice's optimizers, against the rule worked out for every element.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

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

// A rank's gradient in a step; some rows are larger than others.
Tensor slope(Rank rank, int step) {
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
    ((matrix() * slope(rank, step)).sum() + bias().sum() * (rank + 1)).backward();
  }
  torch::OrderedDict<std::string, Tensor> parameters;
};

std::vector<bool> arrived(const Arrival& arrival) {
  std::vector<bool> elements(kCount, arrival.whole);
  if (arrival.whole) return elements;
  for (const GradientPart& part : arrival.parts) {
    for (std::size_t i = part.first; i < part.first + part.count; ++i) elements[i] = true;
  }
  return elements;
}

// The mean of what each element held back, where it arrives; by element.
struct Held {
  std::vector<double> sums = std::vector<double>(kCount);  // g + wd w, over ranks and steps
  std::vector<int> steps = std::vector<int>(kCount);
};

TEST(Sparse, MovesWhatArrivedAndHoldsTheRest) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    Sgd optimizer{model.parameters.values(),
                  {.lr = kRate, .momentum = kMomentum, .weight_decay = kDecay}};
    optimizer.follow(parallel);

    std::vector<double> weights(kCount, 1);
    std::vector<double> velocities(kCount);
    Held held;
    int partial = 0;
    for (int step = 0; step < 20; ++step) {
      for (Rank rank = 0; rank < kRanks; ++rank) {
        const Tensor given = slope(rank, step).to(torch::kDouble).flatten();
        for (std::size_t i = 0; i < kCount; ++i)
          held.sums[i] += given[static_cast<std::int64_t>(i)].item<double>() + kDecay * weights[i];
      }
      model.backward(comm.rank(), step);
      parallel.finish();
      optimizer.step();

      const Arrival arrival = parallel.arrivals()->of(model.matrix());
      partial += arrival.whole ? 0 : 1;
      const std::vector<bool> there = arrived(arrival);
      for (std::size_t i = 0; i < kCount; ++i) {
        if (!there[i]) continue;
        velocities[i] = kMomentum * velocities[i] + held.sums[i] / kRanks;
        weights[i] -= kRate * velocities[i];
        held.sums[i] = 0;
      }
      const Tensor expected = torch::tensor(weights, torch::kDouble).view({kRows, kColumns});
      EXPECT_TRUE(torch::allclose(model.matrix().to(torch::kDouble), expected, 1e-4, 1e-4))
          << "step " << step;
      EXPECT_TRUE(parallel.arrivals()->of(model.bias()).whole);
      EXPECT_FALSE(equalise({{"matrix", model.matrix().detach()}}, comm));
    }
    EXPECT_GT(partial, 10);
  });
}

// w -= lr s r where r arrives, with s = eta |w| / (|g| + eps), and g what each element last brought
// for a step; also in the first sparse step, when some have brought it in the dense one before.
TEST(Sparse, LarsGoesByWhatEachPartLastBrought) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    constexpr double kEta = 0.02;
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    Lars optimizer{model.parameters.values(),
                   {.lr = kRate, .momentum = 0, .weight_decay = 0, .eta = kEta}};
    optimizer.follow(parallel);
    std::vector<double> weights(kCount, 1);
    std::vector<double> last(kCount);
    Held held;
    for (int step = 0; step < 12; ++step) {
      for (Rank rank = 0; rank < kRanks; ++rank) {
        const Tensor given = slope(rank, step).to(torch::kDouble).flatten();
        for (std::size_t i = 0; i < kCount; ++i)
          held.sums[i] += given[static_cast<std::int64_t>(i)].item<double>();
      }
      for (int& steps : held.steps) ++steps;
      model.backward(comm.rank(), step);
      parallel.finish();
      optimizer.step();

      const std::vector<bool> there = arrived(parallel.arrivals()->of(model.matrix()));
      double squared_weights = 0;
      double squared_gradient = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        if (there[i]) last[i] = held.sums[i] / kRanks / held.steps[i];
        squared_gradient += last[i] * last[i];
        squared_weights += weights[i] * weights[i];
      }
      const double scale = kEta * std::sqrt(squared_weights / squared_gradient);
      for (std::size_t i = 0; i < kCount; ++i) {
        if (!there[i]) continue;
        weights[i] -= kRate * scale * std::exchange(held.sums[i], 0) / kRanks;
        held.steps[i] = 0;
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

TEST(Sparse, AnotherOptimizerIsOneClearError) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    model.backward(comm.rank(), 0);
    expect_refusal(parallel, "follow()");
    comm.barrier();
  });
}

TEST(Sparse, AnOptimizerThatHasGoneFollowsNoMore) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    {
      Sgd first{model.parameters.values()};
      first.follow(parallel);
      model.backward(comm.rank(), 0);
      parallel.finish();
      first.step();
    }
    Sgd second{model.parameters.values()};
    model.backward(comm.rank(), 1);
    expect_refusal(parallel, "follow()");
    second.follow(parallel);
    EXPECT_FALSE(parallel.finish().empty);
  });
}

TEST(Sparse, EveryMatrixNeedsAnOptimizerThatFollows) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    {
      Sgd all{model.parameters.values()};
      all.follow(parallel);
    }
    Sgd some{{model.bias()}};
    some.follow(parallel);
    model.backward(comm.rank(), 0);
    expect_refusal(parallel, "'matrix'");
    // A bias is always sent whole.
    Sgd matrices{{model.matrix()}};
    matrices.follow(parallel);
    some.set_arrivals(nullptr);
    EXPECT_FALSE(parallel.finish().empty);
  });
}

TEST(Sparse, AnOptimizerMayOutliveWhatItFollowed) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    Sgd optimizer{model.parameters.values(), {.lr = kRate, .momentum = 0}};
    std::optional<DataParallel> parallel;
    parallel.emplace(model.parameters, comm, sparse_options());
    optimizer.follow(*parallel);
    for (int step = 0; step < 5; ++step) {
      model.backward(comm.rank(), step);
      parallel->finish();
      optimizer.step();
    }
    EXPECT_FALSE(parallel->arrivals()->of(model.matrix()).whole);
    const Tensor before = model.matrix().detach().clone();
    parallel.reset();
    optimizer.step();
    EXPECT_TRUE(torch::equal(model.matrix(), before));

    parallel.emplace(model.parameters, comm);
    model.backward(comm.rank(), 5);
    parallel->finish();
    optimizer.step();
    const Tensor mean = (slope(0, 5) + slope(1, 5)) / kRanks;
    EXPECT_TRUE(torch::allclose(model.matrix(), before - kRate * mean, 1e-5, 1e-5));
  });
}

// What was held back of it goes on arriving.
TEST(Sparse, AParameterThatIsFrozenLaterStandsStill) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    Model model;
    DataParallel parallel{model.parameters, comm, sparse_options()};
    Sgd optimizer{model.parameters.values(), {.lr = kRate, .weight_decay = kDecay}};
    optimizer.follow(parallel);
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

TEST(Sparse, NoSparsityIsTheDensePathItself) {
  run_torch_ranks(kRanks, [](Communicator& comm) {
    std::vector<NamedTensors> ends;
    for (const bool sparse : {false, true}) {
      Model model;
      GradientOptions options;
      if (sparse) options.sparse = {.sparsity = 0.5, .chunk = kChunk, .dense_steps = 100};
      DataParallel parallel{model.parameters, comm, options};
      Lars optimizer{model.parameters.values(), {.lr = 0.5, .weight_decay = kDecay}};
      optimizer.follow(parallel);
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
