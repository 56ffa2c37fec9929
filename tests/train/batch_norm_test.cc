// Tests the batch norms of the models at several ranks.
#include "train/models/batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/libtorch/torch_ranks.h"
#include "train/models/models.h"

namespace sluice::train {
namespace {

using torch::Tensor;

std::shared_ptr<Model> small_conv_net() {
  return make_model("smallconv", {.input = {.classes = 3, .channels = 1, .image = 16}, .seed = 3})
      .value();
}

Tensor batch(int rank) {
  auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank) + 40);
  return torch::randn({6, 1, 16, 16}, random) + rank;
}

Tensor running_mean(Model& model) { return model.named_buffers()["bn1.running_mean"]; }

TEST(BatchNorm, SynchronisedEqualsOneLargeBatch) {
  const auto alone = small_conv_net();
  const Tensor whole = alone->forward(torch::cat({batch(0), batch(1)}));
  whole.square().mean().backward();
  libtorch::run_torch_ranks(2, [&](Communicator& communicator) {
    const auto shared = small_conv_net();
    synchronise_batch_norms(*shared, communicator.split(0, communicator.rank()));
    const Tensor own = shared->forward(batch(communicator.rank()));
    own.square().mean().backward();
    // Sums have another order; the tolerance covers f32 rounding through three layers.
    EXPECT_TRUE(torch::allclose(own, whole.narrow(0, communicator.rank() * 6, 6), 1e-4, 1e-5));
    EXPECT_TRUE(torch::allclose(running_mean(*shared), running_mean(*alone), 1e-4, 1e-5));
    EXPECT_GT(seconds_waited(*shared), 0);
    EXPECT_EQ(shared->named_parameters().size(), alone->named_parameters().size());
    EXPECT_EQ(shared->named_buffers().size(), alone->named_buffers().size());
    shared->eval();
    EXPECT_TRUE(shared->forward(batch(0)).isfinite().all().item<bool>());
  });
}

TEST(BatchNorm, CanKeepTheStatisticsOfTheLastBatch) {
  const auto model = small_conv_net();
  keep_last_batches(*model);
  const torch::NoGradGuard no_grad;
  model->forward(batch(0));
  model->forward(batch(1));
  const auto fresh = small_conv_net();
  keep_last_batches(*fresh);
  fresh->forward(batch(1));
  EXPECT_TRUE(torch::equal(running_mean(*model), running_mean(*fresh)));
}

TEST(AveragedStatistics, AreTheMeanWhileTheObjectExists) {
  std::vector<Tensor> own(2);
  for (int rank = 0; rank < 2; ++rank) {
    const auto model = small_conv_net();
    model->forward(batch(rank));
    own[static_cast<std::size_t>(rank)] = running_mean(*model).clone();
  }
  libtorch::run_torch_ranks(2, [&](Communicator& communicator) {
    const auto model = small_conv_net();
    model->forward(batch(communicator.rank()));
    {
      const AveragedStatistics averaged{*model, communicator};
      EXPECT_TRUE(torch::allclose(running_mean(*model), (own[0] + own[1]) / 2));
    }
    EXPECT_TRUE(
        torch::equal(running_mean(*model), own[static_cast<std::size_t>(communicator.rank())]));
  });
}

}  // namespace
}  // namespace sluice::train
