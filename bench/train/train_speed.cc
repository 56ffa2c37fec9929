// train_speed.cc - images per second of the training loop, against a bare loop with libtorch.
//
//   train_speed                                one rank
//   sluice launch -n 2 -- train_speed          two ranks, against two independent bare loops that
//                                              run at the same time
//   train_speed --model resnet18 --image 64 --batch 16
//
// Both train the same network on images in memory and take turns: a slice of steps each, between
// barriers. The time of the first step of an epoch starts at the end of the previous step. Standard
// output has one JSON object.
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "bench/program.h"
#include "data/dataset.h"
#include "sluice/status.h"
#include "train/loop/start_up.h"
#include "train/loop/training_batches.h"
#include "train/loop/training_step.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model = "resnet20";
  int image = 32;
  int batch = 64;
  int slices = 20;
  int steps = 5;        // per slice
  int epoch_steps = 8;  // small, so that slices contain ends of epochs
};

std::unique_ptr<data::Dataset> images(int count, int side) {
  auto set = std::make_unique<data::MemoryDataset>(10);
  data::Image image{.channels = 3, .height = side, .width = side};
  image.pixels.resize(image.size());
  for (int i = 0; i < count; ++i) {
    base::Random random{base::mixed({7, static_cast<std::uint64_t>(i)})};
    for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(random.below(256));
    const Status status = set->add(image, i % 10);
    if (!status.ok()) throw Error{status};
  }
  return set;
}

data::Data data_of(const Options& options, int ranks) {
  data::Data data;
  data.train = images(options.epoch_steps * options.batch * ranks, options.image);
  data.validation = images(10, options.image);
  data.classes.assign(10, "class");
  data.normalization = {.mean = {127, 127, 127}, .deviation = {74, 74, 74}};
  data.channels = 3;
  data.height = data.width = options.image;
  return data;
}

recipe::Recipe recipe_of(const Options& options) {
  recipe::Recipe recipe;
  recipe.name = "speed";
  recipe.model = options.model;
  recipe.image = options.image;
  recipe.batch = options.batch;
  recipe.epochs = 100'000;
  recipe.rate = 1e-3;
  recipe.rate_scaling = recipe::LearningRateScaling::None;
  recipe.decay = recipe::DecayKind::Constant;
  recipe.augmentation = recipe::AugmentationKind::Shift;
  return recipe;
}

// A plain training loop, on one batch in memory.
class Bare {
 public:
  explicit Bare(const Options& options)
      : network_{train::make_model(
                     options.model,
                     {.input = {.classes = 10, .channels = 3, .image = options.image}})
                     .value()},
        optimizer_{network_->parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9)},
        images_{torch::randn({options.batch, 3, options.image, options.image})},
        labels_{torch::randint(10, {options.batch}, torch::kLong)} {}

  void step() {
    optimizer_.zero_grad();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(network_->forward(images_), labels_);
    loss.backward();
    optimizer_.step();
    loss_ = loss.item<double>();
  }

 private:
  std::shared_ptr<train::Model> network_;
  torch::optim::SGD optimizer_;
  torch::Tensor images_;
  torch::Tensor labels_;
  double loss_ = 0;
};

double seconds(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double largest(double value, Communicator& communicator) {
  communicator.all_reduce(std::span{&value, 1}, {.op = ReduceOp::Max}).wait();
  return value;
}

nlohmann::ordered_json measure(const Options& options) {
  at::set_num_threads(1);
  train::TrainerOptions trainer{.recipe = recipe_of(options)};
  train::TrainingSetup setup =
      train::start_up([] { return Communicator::from_env(); },
                      [&]() -> Result<data::Data> { return data_of(options, 2); }, trainer)
          .value();
  Communicator& communicator = setup.communicator;
  train::TrainingStep step{setup, setup.recipe};
  train::TrainingBatches batches{{.recipe = setup.recipe,
                                  .plan = setup.plan,
                                  .data = setup.data,
                                  .rank = communicator.rank()}};
  Bare bare{options};
  std::int64_t done = 0;
  std::vector<double> ratios;
  std::vector<double> firsts;  // first steps of epochs
  std::vector<double> others;
  const auto train = [&](bool timed) {
    const auto begin = Clock::now();
    const Result<train::StepOutcome> outcome = step.take(done, batches);
    if (!outcome.ok()) throw Error{outcome.status()};
    const bool first = setup.plan.epoch_of(done).first_step == done;
    if (timed) (first ? firsts : others).push_back(seconds(begin));
    ++done;
  };
  for (int i = 0; i < 5; ++i) {
    train(false);
    bare.step();
  }
  double own_s = 0;
  for (int slice = 0; slice < options.slices; ++slice) {
    communicator.barrier();
    auto begin = Clock::now();
    for (int i = 0; i < options.steps; ++i) bare.step();
    const double bare_s = largest(seconds(begin), communicator);
    communicator.barrier();
    begin = Clock::now();
    for (int i = 0; i < options.steps; ++i) train(true);
    const double loop_s = largest(seconds(begin), communicator);
    ratios.push_back(bare_s / loop_s);
    own_s += loop_s;
  }
  const double images =
      static_cast<double>(options.slices) * options.steps * options.batch * communicator.size();
  return {{"model", options.model},
          {"image", options.image},
          {"batch", options.batch},
          {"ranks", communicator.size()},
          {"images_per_s", images / own_s},
          {"of_bare", median(ratios)},
          {"first_step_of_epoch", median(firsts) / median(others)},
          {"rank", communicator.rank()}};
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Options options;
  CLI::App app{"Measures the training loop against a bare loop with libtorch", "train_speed"};
  app.add_option("--model", options.model, "Name of a model: resnet20, resnet18, ...");
  app.add_option("--image", options.image, "Height and width of the images")
      ->check(CLI::Range(8, 512));
  app.add_option("--batch", options.batch, "Images per rank and step")->check(CLI::Range(1, 4096));
  app.add_option("--slices", options.slices, "Slices per contender")->check(CLI::Range(1, 999));
  app.add_option("--steps", options.steps, "Training steps per slice")->check(CLI::Range(1, 999));
  return sluice::bench::run_program(app, argc, argv, [&] {
    const auto result = sluice::bench::measure(options);
    if (result["rank"] == 0) sluice::base::print("{}\n", result.dump());
    return 0;
  });
}
