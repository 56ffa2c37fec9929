#include "sluice/torch/sync_batch_norm.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/status.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch {
namespace {

using torch::Tensor;
using torch::nn::BatchNormOptions;

using NoMomentum = std::decay_t<decltype(BatchNormOptions{1}.momentum())>;  // an empty optional

constexpr int kFeatures = 5;

// Returns a batch whose means are so far from zero that naive sums of squares lose digits.
Tensor batch_of(std::vector<std::int64_t> shape, torch::ScalarType type) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<std::int64_t> along(shape.size(), 1);
  along[1] = shape[1];
  return (torch::sin(torch::arange(count, torch::kDouble) * 1.3).view(shape) +
          torch::arange(shape[1], torch::kDouble).view(along) *
              (type == torch::kDouble ? 1000 : 10))
      .to(type);
}

// Returns the first sample of a rank's part. Parts differ in size, and rank 1 has no sample.
std::int64_t first_of(Rank rank, int ranks, std::int64_t count) {
  if (rank == 0) return 0;
  if (rank == ranks) return count;
  return 3 + 2 * std::max(rank - 2, 0);
}

struct PassResult {
  Tensor output;
  Tensor grad_input;
};

// Runs forward, and backward from the gradient `grad_output` of the output.
template <class Norm>
PassResult pass(Norm& norm, const Tensor& input, const Tensor& grad_output) {
  const Tensor leaf = input.detach().clone(input.suggest_memory_format()).set_requires_grad(true);
  PassResult result;
  result.output = norm->forward(leaf);
  (result.output * grad_output).sum().backward();
  result.grad_input = leaf.grad();
  return result;
}

double distance(const Tensor& ours, const Tensor& theirs) {
  const double norm = theirs.to(torch::kDouble).norm().item<double>();
  return (ours - theirs).to(torch::kDouble).norm().item<double>() / std::max(norm, 1e-300);
}

// Compares the ranks' results on parts of several batches with BatchNorm on the whole batches.
template <class Plain>
void expect_as_one(int ranks, const BatchNormOptions& options, std::vector<std::int64_t> shape,
                   torch::ScalarType type, torch::MemoryFormat format) {
  const double tolerance = type == torch::kDouble ? 1e-11 : 2e-5;
  run_torch_ranks(ranks, [&](Communicator& comm) {
    SyncBatchNorm sync{options, comm.split(0, comm.rank())};
    Plain plain{options};
    sync->to(type);
    plain->to(type);
    if (options.affine()) {
      fill(*sync, 2);
      fill(*plain, 2);
    }
    const std::int64_t first = first_of(comm.rank(), ranks, shape[0]);
    const std::int64_t count = first_of(comm.rank() + 1, ranks, shape[0]) - first;
    for (int step = 0; step < 3; ++step) {
      const Tensor input = (batch_of(shape, type) * (1 + step)).contiguous(format);
      const Tensor grad_output = torch::cos(batch_of(shape, type) * 0.7);
      plain->zero_grad();
      sync->zero_grad();
      const PassResult whole = pass(plain, input, grad_output);
      const PassResult part =
          pass(sync, input.narrow(0, first, count), grad_output.narrow(0, first, count));
      EXPECT_LT(distance(part.output, whole.output.narrow(0, first, count)), tolerance);
      EXPECT_LT(distance(part.grad_input, whole.grad_input.narrow(0, first, count)),
                tolerance * 10);
      if (options.affine()) {
        for (const auto& each :
             {std::pair{sync->weight, plain->weight}, std::pair{sync->bias, plain->bias}}) {
          Tensor sum = each.first.grad().to(torch::kDouble);
          comm.all_reduce({sum.data_ptr(), kFeatures, DataType::F64}).wait();
          EXPECT_LT(distance(sum, each.second.grad()), tolerance * 10);
        }
      }
      if (options.track_running_stats()) {
        EXPECT_LT(distance(sync->running_mean, plain->running_mean), tolerance);
        EXPECT_LT(distance(sync->running_var, plain->running_var), tolerance);
        EXPECT_EQ(sync->num_batches_tracked.template item<int>(), step + 1);
      }
    }
    sync->eval();
    plain->eval();
    const Tensor input = batch_of(shape, type);
    if (options.track_running_stats()) {
      EXPECT_LT(distance(sync->forward(input), plain->forward(input)), tolerance);
    } else {
      EXPECT_TRUE(torch::equal(sync->forward(input), plain->forward(input)));
    }
  });
}

TEST(SyncBatchNorm, RanksAreOneBatch) {
  for (const int ranks : {2, 3, 4, 7}) {
    SCOPED_TRACE(ranks);
    for (const torch::ScalarType type : {torch::kDouble, torch::kFloat}) {
      expect_as_one<torch::nn::BatchNorm2d>(ranks, BatchNormOptions{kFeatures},
                                            {20, kFeatures, 3, 4}, type,
                                            torch::MemoryFormat::Contiguous);
    }
  }
}

TEST(SyncBatchNorm, SupportsEveryOption) {
  const BatchNormOptions options{kFeatures};
  const auto contiguous = torch::MemoryFormat::Contiguous;
  for (auto each :
       {BatchNormOptions{options}.affine(false), BatchNormOptions{options}.eps(0.1),
        BatchNormOptions{options}.momentum(NoMomentum{}), BatchNormOptions{options}.momentum(0.5),
        BatchNormOptions{options}.track_running_stats(false)}) {
    expect_as_one<torch::nn::BatchNorm1d>(3, each, {20, kFeatures}, torch::kDouble, contiguous);
  }
  expect_as_one<torch::nn::BatchNorm3d>(2, options, {9, kFeatures, 2, 3, 2}, torch::kFloat,
                                        contiguous);
  expect_as_one<torch::nn::BatchNorm2d>(3, options, {20, kFeatures, 3, 4}, torch::kFloat,
                                        torch::MemoryFormat::ChannelsLast);
}

TEST(SyncBatchNorm, WithOneRankIsBatchNorm) {
  run_torch_ranks(1, [](Communicator& comm) {
    const BatchNormOptions options{kFeatures};
    SyncBatchNorm sync{options, comm.split(0)};
    torch::nn::BatchNorm2d plain{options};
    const Tensor input = batch_of({8, kFeatures, 3, 3}, torch::kFloat);
    const PassResult ours = pass(sync, input, input);
    const PassResult theirs = pass(plain, input, input);
    EXPECT_TRUE(torch::equal(ours.output, theirs.output));
    EXPECT_TRUE(torch::equal(ours.grad_input, theirs.grad_input));
    EXPECT_TRUE(torch::equal(sync->running_var, plain->running_var));
  });
}

TEST(SyncBatchNorm, SupportsHalfPrecision) {
  run_torch_ranks(2, [](Communicator& comm) {
    SyncBatchNorm sync{BatchNormOptions{kFeatures}, comm.split(0)};
    torch::nn::BatchNorm1d plain{BatchNormOptions{kFeatures}};
    const Tensor input =
        torch::sin(batch_of({8, kFeatures}, torch::kFloat)).to(torch::kBFloat16).to(torch::kFloat);
    const Tensor grad_output = torch::cos(input * 3);
    const PassResult whole = pass(plain, input, grad_output);
    const PassResult part = pass(sync, input.narrow(0, 4 * comm.rank(), 4).to(torch::kBFloat16),
                                 grad_output.narrow(0, 4 * comm.rank(), 4));
    EXPECT_EQ(part.output.scalar_type(), torch::kBFloat16);
    EXPECT_EQ(part.grad_input.scalar_type(), torch::kBFloat16);
    EXPECT_LT(distance(part.output, whole.output.narrow(0, 4 * comm.rank(), 4)), 0.01);
    EXPECT_LT(distance(part.grad_input, whole.grad_input.narrow(0, 4 * comm.rank(), 4)), 0.03);
  });
}

TEST(SyncBatchNorm, GivesTheSameBitsAtAllRanks) {
  run_torch_ranks(3, [](Communicator& comm) {
    SyncBatchNorm sync{BatchNormOptions{kFeatures}, comm.split(0, comm.rank())};
    for (int step = 0; step < 3; ++step)
      sync->forward(batch_of({4 + comm.rank(), kFeatures}, torch::kFloat) * (comm.rank() + 1));
    EXPECT_FALSE(
        equalise({{"running_mean", sync->running_mean}, {"running_var", sync->running_var}}, comm));
  });
}

TEST(SyncBatchNorm, OneValueOrAWrongShapeIsAnError) {
  run_torch_ranks(2, [](Communicator& comm) {
    SyncBatchNorm sync{BatchNormOptions{kFeatures}, comm.split(0)};
    EXPECT_THROW(sync->forward(torch::ones({comm.rank(), kFeatures})), Error);
    EXPECT_THROW(sync->forward(torch::ones({4, kFeatures + 1})), Error);
    EXPECT_EQ(sync->forward(torch::ones({0, kFeatures})).numel(), 0);
    comm.barrier();
  });
}

TEST(SyncBatchNorm, OneValueOfOneRankIsAnErrorThatChangesNothing) {
  run_torch_ranks(1, [](Communicator& comm) {
    SyncBatchNorm sync{BatchNormOptions{kFeatures}, comm.split(0)};
    EXPECT_THROW(sync->forward(torch::ones({1, kFeatures})), Error);
    EXPECT_THROW(sync->forward(torch::ones({1, kFeatures, 1, 1})), Error);
    EXPECT_TRUE(torch::equal(sync->running_mean, torch::zeros({kFeatures})));
    EXPECT_TRUE(torch::equal(sync->running_var, torch::ones({kFeatures})));
    EXPECT_EQ(sync->num_batches_tracked.item<int>(), 0);
    sync->eval();
    EXPECT_EQ(sync->forward(torch::ones({1, kFeatures})).numel(), kFeatures);
  });
}

TEST(AverageRunningStatistics, AveragesEveryLayer) {
  run_torch_ranks(3, [](Communicator& comm) {
    torch::nn::Sequential model{torch::nn::BatchNorm1d{4}, torch::nn::Linear{4, 2},
                                torch::nn::BatchNorm1d{2}};
    model->to(torch::kDouble);
    auto& first = *model->ptr(0)->as<torch::nn::BatchNorm1d>();
    auto& last = *model->ptr(2)->as<torch::nn::BatchNorm1d>();
    first.running_mean.fill_(comm.rank());
    last.running_var.fill_(10 * comm.rank());
    last.num_batches_tracked.fill_(comm.rank());
    average_running_statistics(*model, comm);
    EXPECT_TRUE(torch::equal(first.running_mean, torch::ones({4}, torch::kDouble)));
    EXPECT_TRUE(torch::equal(first.running_var, torch::ones({4}, torch::kDouble)));
    EXPECT_TRUE(torch::equal(last.running_var, torch::full({2}, 10, torch::kDouble)));
    EXPECT_EQ(last.num_batches_tracked.item<int>(), comm.rank());
    torch::nn::Linear without{1, 1};
    average_running_statistics(*without, comm);
  });
}

}  // namespace
}  // namespace sluice::libtorch
