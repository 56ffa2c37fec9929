#include "train/checkpoint/resumption.h"

#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <fstream>

#include "bench/allreduce/temporary_folder.h"

namespace sluice::train {
namespace {

std::shared_ptr<Model> network(const std::string& name, int classes, std::uint64_t seed) {
  return make_model(name, {.input = {.classes = classes, .channels = 3, .image = 32}, .seed = seed})
      .value();
}

// Saves a resnet20 of 10 classes with running statistics that differ from the initial ones.
std::filesystem::path saved(const bench::TemporaryFolder& folder, std::shared_ptr<Model>& source) {
  source = network("resnet20", 10, 1);
  (void)source->forward(torch::randn({8, 3, 32, 32}));
  const std::filesystem::path path = folder.path() / "weights.pt";
  torch::save(source, path.string());
  return path;
}

TEST(InitialWeights, AreCopiedWithTheRunningStatistics) {
  const bench::TemporaryFolder folder;
  std::shared_ptr<Model> source;
  const auto path = saved(folder, source);
  const std::shared_ptr<Model> taker = network("resnet20", 10, 2);
  const auto notes = take_weights(path, *taker);
  ASSERT_TRUE(notes.ok()) << notes.status().message();
  EXPECT_TRUE(notes.value().empty());
  for (const auto& item : source->named_parameters())
    EXPECT_TRUE(taker->named_parameters()[item.key()].equal(item.value())) << item.key();
  for (const auto& item : source->named_buffers())
    EXPECT_TRUE(taker->named_buffers()[item.key()].equal(item.value())) << item.key();
}

TEST(InitialWeights, WithAnotherNumberOfClassesLeaveTheClassifierAsItIs) {
  const bench::TemporaryFolder folder;
  std::shared_ptr<Model> source;
  const auto path = saved(folder, source);
  const std::shared_ptr<Model> taker = network("resnet20", 7, 2);
  const torch::Tensor head = taker->named_parameters()["fc.weight"].clone();
  const auto notes = take_weights(path, *taker);
  ASSERT_TRUE(notes.ok()) << notes.status().message();
  ASSERT_EQ(notes.value().size(), 1U);
  EXPECT_EQ(notes.value()[0],
            path.string() + " was trained for 10 classes: the classifier starts afresh");
  EXPECT_TRUE(taker->named_parameters()["fc.weight"].equal(head));
  EXPECT_TRUE(
      taker->named_parameters()["conv1.weight"].equal(source->named_parameters()["conv1.weight"]));
}

TEST(InitialWeights, AnErrorNamesTheTensorThatDoesNotFit) {
  const bench::TemporaryFolder folder;
  std::shared_ptr<Model> source;
  const auto path = saved(folder, source);
  EXPECT_EQ(take_weights(path, *network("smallconv", 10, 2)).status().message(),
            "'conv1.weight' of " + path.string() +
                " is [16, 3, 3, 3], and this network's is [16, 3, 5, 5]");

  const std::filesystem::path text = folder.path() / "text.pt";
  std::ofstream{text} << "no weights";
  const Status refused = take_weights(text, *network("lenet", 10, 2)).status();
  EXPECT_TRUE(refused.message().starts_with(text.string() + " holds no weights that can be read"))
      << refused.message();
  EXPECT_FALSE(take_weights(folder.path() / "nothing.pt", *network("lenet", 10, 2)).ok());
}

}  // namespace
}  // namespace sluice::train
