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

// Saves a resnet20 of 10 classes, whose running statistics differ from the initial ones, and
// returns the path.
std::filesystem::path save_weights(const bench::TemporaryFolder& folder,
                                   std::shared_ptr<Model>& source) {
  source = network("resnet20", 10, 1);
  (void)source->forward(torch::randn({8, 3, 32, 32}));
  const std::filesystem::path path = folder.path() / "weights.pt";
  torch::save(source, path.string());
  return path;
}

TEST(InitialWeights, AreCopiedWithTheRunningStatistics) {
  const bench::TemporaryFolder folder;
  std::shared_ptr<Model> source;
  const auto path = save_weights(folder, source);
  const std::shared_ptr<Model> target = network("resnet20", 10, 2);
  const auto notes = load_initial_weights(path, *target);
  ASSERT_TRUE(notes.ok()) << notes.status().message();
  EXPECT_TRUE(notes.value().empty());
  for (const auto& item : source->named_parameters())
    EXPECT_TRUE(target->named_parameters()[item.key()].equal(item.value())) << item.key();
  for (const auto& item : source->named_buffers())
    EXPECT_TRUE(target->named_buffers()[item.key()].equal(item.value())) << item.key();
}

TEST(InitialWeights, WithAnotherNumberOfClassesLeaveTheClassifierAsItIs) {
  const bench::TemporaryFolder folder;
  std::shared_ptr<Model> source;
  const auto path = save_weights(folder, source);
  const std::shared_ptr<Model> target = network("resnet20", 7, 2);
  const torch::Tensor classifier = target->named_parameters()["fc.weight"].clone();
  const auto notes = load_initial_weights(path, *target);
  ASSERT_TRUE(notes.ok()) << notes.status().message();
  ASSERT_EQ(notes.value().size(), 1U);
  EXPECT_EQ(notes.value()[0],
            path.string() + " was trained for 10 classes: the classifier starts with new weights");
  EXPECT_TRUE(target->named_parameters()["fc.weight"].equal(classifier));
  EXPECT_TRUE(
      target->named_parameters()["conv1.weight"].equal(source->named_parameters()["conv1.weight"]));
}

TEST(InitialWeights, AnErrorNamesTheTensorThatDoesNotFit) {
  const bench::TemporaryFolder folder;
  std::shared_ptr<Model> source;
  const auto path = save_weights(folder, source);
  EXPECT_EQ(load_initial_weights(path, *network("smallconv", 10, 2)).status().message(),
            "'conv1.weight' of " + path.string() +
                " has shape [16, 3, 3, 3], but this network's has shape [16, 3, 5, 5]");

  const std::filesystem::path text = folder.path() / "text.pt";
  std::ofstream{text} << "no weights";
  const Status refused = load_initial_weights(text, *network("lenet", 10, 2)).status();
  EXPECT_TRUE(refused.message().starts_with(text.string() + " has no weights that can be read"))
      << refused.message();
  EXPECT_FALSE(load_initial_weights(folder.path() / "nothing.pt", *network("lenet", 10, 2)).ok());
}

}  // namespace
}  // namespace sluice::train
