#include "tests/train/tiny_training.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>

#include "base/random.h"
#include "data/dataset.h"
#include "tests/libtorch/torch_ranks.h"

namespace sluice::train {
namespace {

std::unique_ptr<data::Dataset> images(const TinyData& wanted, int first, int count) {
  auto set = std::make_unique<data::MemoryDataset>(wanted.classes);
  data::Image image{.channels = 1, .height = wanted.side, .width = wanted.side};
  for (int number = first; number < first + count; ++number) {
    const int label = number % wanted.classes;
    base::Random random{base::mixed({17, static_cast<std::uint64_t>(number)})};
    image.pixels.assign(image.size(), 0);
    for (int y = 0; y < wanted.side; ++y) {
      for (int x = 0; x < wanted.side; ++x) {
        const bool bright = (y * wanted.classes / wanted.side) == label;
        image.pixels[static_cast<std::size_t>(y * wanted.side + x)] =
            static_cast<std::uint8_t>(random.below(120) + (bright ? 100 : 0));
      }
    }
    EXPECT_TRUE(set->add(image, label).ok());
  }
  return set;
}

}  // namespace

data::Data tiny_data(const TinyData& wanted) {
  data::Data data;
  data.train = images(wanted, 0, wanted.train);
  data.validation = images(wanted, 100'000, wanted.validation);
  for (int label = 0; label < wanted.classes; ++label)
    data.classes.push_back("band " + std::to_string(label));
  data.normalization = {.mean = {75}, .deviation = {55}};
  data.channels = 1;
  data.height = data.width = wanted.side;
  data.description = "bright bands";
  return data;
}

recipe::Recipe tiny_recipe() {
  recipe::Recipe recipe;
  recipe.name = "tiny";
  recipe.model = "lenet";
  recipe.image = 28;
  recipe.epochs = 2;
  recipe.batch = 8;
  recipe.rate = 0.05;
  recipe.rate_batch = 8;
  recipe.rate_scaling = recipe::LearningRateScaling::None;
  recipe.decay = recipe::DecayKind::Constant;
  recipe.seed = 5;
  return recipe;
}

void RecordedEvents::stepped(const StepReport& report) {
  steps.push_back(report);
  if (on_step) on_step(report);
}

std::vector<Result<TrainingSummary>> try_tiny(const TinyRun& run) {
  const std::atomic<int> no_stop{0};
  std::vector<std::optional<Result<TrainingSummary>>> ends(static_cast<std::size_t>(run.ranks));
  libtorch::run_torch_ranks(run.ranks, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    ends[rank] =
        train_on([&]() -> Result<data::Data> { return tiny_data(run.data); },
                 [&] { return communicator; }, run.options, rank == 0 ? run.events : nullptr,
                 run.stops == nullptr ? no_stop : (*run.stops)[rank]);
  });
  std::vector<Result<TrainingSummary>> results;
  for (auto& end : ends) results.push_back(std::move(*end));
  return results;
}

TrainingSummary train_tiny(const TinyRun& run) {
  std::vector<Result<TrainingSummary>> results = try_tiny(run);
  for (const Result<TrainingSummary>& result : results)
    EXPECT_TRUE(result.ok()) << result.status().message();
  return results[0].ok() ? results[0].value() : TrainingSummary{};
}

}  // namespace sluice::train
