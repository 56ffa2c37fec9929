// accuracy.cc - the accuracy that a network reaches, for each way to send gradients.
//
//   accuracy [--data DIR] [--seeds 5] [--ways f32,f16,...] [--output FILE]
//
// Ranks are threads of this process. They train a small network on a few thousand images of
// CIFAR-10. For each seed all ways start from the same weights and see the same images in the same
// order, so each way is compared with f32 seed by seed. After each training all ranks must have the
// same weights.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "base/format.h"
#include "base/text.h"
#include "bench/allreduce/temporary_folder.h"
#include "bench/program.h"
#include "data/dataset.h"
#include "data/formats/formats.h"
#include "data/loader/loader.h"
#include "data/loader/sampler.h"
#include "engine/internal_collectives.h"
#include "libtorch/parameters.h"
#include "recipe/epoch_table.h"
#include "recipe/learning_rate.h"
#include "sluice/communicator.h"
#include "sluice/torch/data_parallel.h"
#include "sluice/torch/sgd.h"
#include "train/loop/evaluation.h"
#include "train/loop/training_batches.h"
#include "train/models/models.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string data;
  std::size_t images = 10'000;
  std::string model = "smallconv";
  int ranks = 4;
  std::size_t batch = 16;  // per rank
  int epochs = 24;
  double rate = 0.004;
  double decay = 5e-4;
  std::size_t chunk = 256;
  int seeds = 5;
  std::string ways = "f32,f16,double f16,sparse 85%";
  double most = 0.6;
  double least_base = 50;
  double most_base = 85;
  std::string output;
};

[[noreturn]] void refuse(const std::string& why) { throw Error{Status{Code::InvalidInput, why}}; }

struct Images {
  data::MemoryDataset train;
  data::MemoryDataset test;
  data::Normalization normalization;  // of the training images
};

fs::path find_archive() {
  const char* const data = std::getenv("SLUICE_TEST_DATA");
  if (data == nullptr)
    refuse(
        "no images: give --data, a folder with train/ and test/, or set SLUICE_TEST_DATA to a "
        "folder "
        "with cifar10-jpeg.tar.xz");
  const fs::path archive = fs::path{data} / "cifar10-jpeg.tar.xz";
  if (!fs::exists(archive)) refuse(base::format("{} does not exist", archive.string()));
  return archive;
}

data::MemoryDataset load_split(const fs::path& folder, data::Split split,
                               std::size_t most_per_class) {
  data::LoadedImages loaded =
      data::load_images(data::list_images(folder, split, most_per_class).value()).value();
  if (!loaded.skipped.empty()) refuse(loaded.skipped.front());
  return std::move(loaded.images);
}

// The first `train` images of DIR/train, equally many of each class, and all images of DIR/test.
// Without a folder, unpacks $SLUICE_TEST_DATA/cifar10-jpeg.tar.xz. Throws Error.
Images load(const std::string& folder, std::size_t train) {
  fs::path root = folder;
  std::optional<TemporaryFolder> unpacked;
  if (folder.empty()) {
    const fs::path archive = find_archive();
    root = unpacked.emplace().make("images");
    const std::string unpack =
        base::format("tar -xJf '{}' -C '{}'", archive.string(), root.string());
    if (std::system(unpack.c_str()) != 0)
      refuse(base::format("cannot unpack {} into {}", archive.string(), root.string()));
  }
  const std::size_t classes = data::list_images(root, data::Split::Train, 1).value().classes.size();
  if (classes == 0 || train < classes)
    refuse(
        base::format("{} has {} classes, too many for {} images", root.string(), classes, train));
  Images images{load_split(root, data::Split::Train, train / classes),
                load_split(root, data::Split::Test, 0),
                {}};
  if (images.train.size() != train / classes * classes)
    refuse(base::format("{} has only {} of {} training images", root.string(), images.train.size(),
                        train));
  images.normalization = images.train.statistics();
  return images;
}

struct Way {
  std::string name;
  GradientOptions options;
  std::vector<double> accuracies = {};  // percent, by seed
  double seconds = 0;                   // all trainings together
};

// The ranks share a node, where gradients are converted only with force_wire.
std::vector<Way> ways_of(const Options& options, std::int64_t steps_per_epoch) {
  const GradientOptions f16{.wire = WireType::F16, .force_wire = true};
  GradientOptions double_f16 = f16;
  double_f16.double_buffering = true;
  const SparseOptions sparse{.sparsity = 0.85,
                             .chunk = options.chunk,
                             .dense_steps = steps_per_epoch,
                             .ramp_steps = steps_per_epoch};
  const std::vector<Way> known{
      {"f32", {}},
      {"f16", f16},
      {"bf16", {.wire = WireType::BF16, .force_wire = true}},
      {"double f16", double_f16},
      {"sparse 85%", {.sparse = sparse}},
  };
  std::vector<Way> chosen;
  std::istringstream list{options.ways};
  for (std::string name; std::getline(list, name, ',');) {
    const auto way = std::find_if(known.begin(), known.end(),
                                  [&](const Way& each) { return each.name == name; });
    if (way == known.end())
      refuse(base::format("there is no way {}: choose from f32, f16, bf16, double f16, sparse 85%",
                          base::quote(name)));
    chosen.push_back(*way);
  }
  if (chosen.empty() || chosen[0].name != "f32")
    refuse("--ways must start with f32: the others are compared with it");
  return chosen;
}

// One rank of a training.
class Trainee {
 public:
  Trainee(const Options& options, const Images& images, const Way& way, std::uint64_t seed,
          Communicator& comm)
      : options_{options},
        images_{images},
        seed_{seed},
        comm_{comm},
        model_{train::make_model(options.model, {.input = {.classes = images.train.classes(),
                                                           .channels = images.train.channels(),
                                                           .image = images.train.height()},
                                                 .seed = seed})
                   .value()},
        optimizer_{model_->parameters(), {.lr = options.rate, .weight_decay = options.decay}},
        parallel_{*model_, comm, way.options} {
    parallel_.attach(optimizer_);
  }

  // Trains and returns the accuracy in percent. Each rank tests its share of the images with its
  // own batch statistics.
  double train() {
    recipe::Recipe recipe;
    recipe.batch = static_cast<int>(options_.batch);
    recipe.epochs = options_.epochs;
    recipe.epoch_end = recipe::EpochEnd::Drop;
    const recipe::EpochTable table =
        recipe::make_epoch_table(recipe, comm_.size(),
                                 static_cast<std::int64_t>(images_.train.size()))
            .value();
    data::Sampler sampler{table, comm_.rank(), seed_};
    data::Loader loader{images_.train, loading(data::ViewKind::Shifted),
                        [&](std::int64_t step) { return sampler.samples(step, 0); }, 0,
                        table.steps};
    const std::int64_t steps = table.steps / options_.epochs;
    const auto warm_up = static_cast<double>(steps / 2);
    const recipe::LearningRateSchedule schedule{
        .base = options_.rate,
        .warm_up = {.length = warm_up, .from = 0.1},
        .decay = recipe::PolynomialLearningRate{
            .length = static_cast<double>(options_.epochs * steps) - warm_up}};
    for (std::int64_t step = 0; step < table.steps; ++step) {
      const auto [images, labels] = train::tensors_over(*loader.next().value());
      optimizer_.zero_grad();
      train::smoothed_cross_entropy(model_->forward(images), labels, 0).backward();
      parallel_.finish();
      optimizer_.set_lr(recipe::learning_rate_at(schedule, static_cast<double>(step)));
      optimizer_.step();
    }
    if (!parallel_.flush().empty) optimizer_.step();
    require_equal_weights();
    return accuracy();
  }

 private:
  data::LoaderOptions loading(data::ViewKind kind) const {
    return {.threads = 0,
            .view = {.kind = kind},
            .normalization = images_.normalization,
            .seed = seed_,
            .image = images_.train.height()};
  }

  void require_equal_weights() {
    if (!engine::same_everywhere(comm_, libtorch::hash_of(model_->named_parameters().pairs())))
      refuse("the ranks have different weights after the training");
  }

  double accuracy() {
    const torch::NoGradGuard no_grad;
    model_->eval();
    const train::EvaluationSamples samples{static_cast<std::int64_t>(images_.test.size()), 100,
                                           comm_.size(), comm_.rank()};
    data::Loader loader{images_.test, loading(data::ViewKind::Whole),
                        [&](std::int64_t number) { return samples.batch(number); }, 0,
                        samples.batches()};
    std::int64_t right = 0;
    for (std::int64_t number = 0; number < samples.batches(); ++number) {
      const auto [images, labels] = train::tensors_over(*loader.next().value());
      right += model_->forward(images).argmax(1).eq(labels).sum().item<std::int64_t>();
    }
    comm_.all_reduce(std::span{&right, 1}).wait();
    return 100.0 * static_cast<double>(right) / static_cast<double>(images_.test.size());
  }

  const Options& options_;
  const Images& images_;
  std::uint64_t seed_;
  Communicator& comm_;
  std::shared_ptr<train::Model> model_;
  Sgd optimizer_;
  DataParallel parallel_;
};

double trained_accuracy(const Options& options, const Images& images, const Way& way,
                        std::uint64_t seed) {
  std::vector<Communicator> comms = Communicator::in_process(options.ranks);
  std::vector<double> accuracies(comms.size());
  std::vector<std::exception_ptr> errors(comms.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < comms.size(); ++rank) {
    threads.emplace_back([&, rank, comm = comms[rank]]() mutable {
      try {
        at::set_num_threads(1);
        accuracies[rank] = Trainee{options, images, way, seed, comm}.train();
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return accuracies[0];
}

struct Spread {
  double mean = 0;
  double error = 0;  // standard error of the mean
};

Spread spread_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (n > 1) spread.error = std::sqrt(squares / (n - 1) / n);
  return spread;
}

Spread difference(const Way& way, const Way& base) {
  std::vector<double> differences;
  for (std::size_t seed = 0; seed < way.accuracies.size(); ++seed)
    differences.push_back(way.accuracies[seed] - base.accuracies[seed]);
  return spread_of(differences);
}

// Returns whether all ways are within the limit.
bool print(const Options& options, const std::vector<Way>& ways) {
  base::print("{} on {} images, {} epochs, {} ranks with a batch of {} each, {} seeds\n",
              options.model, options.images, options.epochs, options.ranks, options.batch,
              options.seeds);
  base::print("  {:<12} {:>18} {:>20} {:>12}\n", "way", "accuracy", "minus f32", "time");
  Json document{{"model", options.model}, {"images", options.images}, {"epochs", options.epochs},
                {"ranks", options.ranks}, {"batch", options.batch},   {"rate", options.rate},
                {"seeds", options.seeds}, {"ways", Json::array()}};
  const Spread base = spread_of(ways[0].accuracies);
  bool met = base.mean >= options.least_base && base.mean <= options.most_base;
  if (!met)
    base::print("  the accuracy of f32 is not between {}% and {}%\n", options.least_base,
                options.most_base);
  for (const Way& way : ways) {
    const Spread own = spread_of(way.accuracies);
    const Spread against = difference(way, ways[0]);
    base::print(
        "  {:<12} {:>18} {:>20} {:>12}\n", way.name,
        base::format("{:.2f}% +- {:.2f}", own.mean, own.error),
        &way == &ways[0] ? "" : base::format("{:+.2f} +- {:.2f}", against.mean, against.error),
        base::format_seconds(way.seconds / static_cast<double>(way.accuracies.size())));
    document["ways"].push_back({{"way", way.name},
                                {"accuracy", own.mean},
                                {"standard_error", own.error},
                                {"difference", against.mean},
                                {"difference_error", against.error},
                                {"accuracies", way.accuracies}});
    met = met && against.mean >= -options.most;
  }
  base::print("mean +- standard error; limit {} points below f32: {}\n", options.most,
              met ? "met" : "not met");
  if (!options.output.empty()) {
    std::ofstream file{options.output};
    file << document.dump(2) << "\n";
    if (!file.flush()) refuse(base::format("cannot write {}", options.output));
  }
  return met;
}

bool run(const Options& options) {
  const Images images = load(options.data, options.images);
  const std::size_t global = options.batch * static_cast<std::size_t>(options.ranks);
  std::vector<Way> ways = ways_of(options, static_cast<std::int64_t>(images.train.size() / global));
  Progress progress{static_cast<double>(options.seeds) * static_cast<double>(ways.size())};
  for (int seed = 0; seed < options.seeds; ++seed) {
    for (Way& way : ways) {
      progress.begin(base::format("seed {}, {}", seed + 1, way.name));
      const auto begin = std::chrono::steady_clock::now();
      way.accuracies.push_back(
          trained_accuracy(options, images, way, static_cast<std::uint64_t>(seed) + 1));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      way.seconds += took.count();
      progress.advance(1);
    }
  }
  progress.clear();
  return print(options, ways);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures the accuracy with each way to send gradients", "accuracy"};
  sluice::bench::Options options;
  app.add_option("--data", options.data,
                 "A folder with train/ and test/, each with one folder of images per class");
  app.add_option("--images", options.images, "Number of training images")->capture_default_str();
  app.add_option("--model", options.model, "Name of a model, as in sluice train")
      ->capture_default_str();
  app.add_option("--ranks", options.ranks, "Number of ranks, a thread each")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Images per rank and step")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Epochs per training")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  app.add_option("--rate", options.rate, "The highest learning rate")->capture_default_str();
  app.add_option("--decay", options.decay, "Weight decay")->capture_default_str();
  app.add_option("--chunk", options.chunk, "Elements per chunk of sparse gradients")
      ->capture_default_str();
  app.add_option("--seeds", options.seeds, "Trainings per way, with seeds 1, 2, ...")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--ways", options.ways, "f32 and any of f16, bf16, double f16, sparse 85%")
      ->capture_default_str();
  app.add_option("--most", options.most, "Limit: points of accuracy below f32")
      ->capture_default_str();
  app.add_option("--output", options.output, "Write the results to this file as JSON")->take_last();
  app.footer(
      "Exit status: 0 done, 1 the limit is not met, 2 wrong usage, no images or a wrong result.\n"
      "Example:\n"
      "  accuracy --data cifar10 --seeds 5");
  return sluice::bench::run_program(app, argc, argv,
                                    [&] { return sluice::bench::run(options) ? 0 : 1; });
}
