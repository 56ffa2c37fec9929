// plain_training.cc - resnet20 on small images with libtorch alone: its own network, shuffling,
// augmentation, learning rate and torch::optim::SGD. bench/train/learning compares the accuracy of
// `sluice train --recipe cifar10` with it.
//
//   plain_training --data pack:FILE --epochs 4 --seed 1
//
// It shares only the reading of files with Sluice. Standard output has one JSON object: the
// accuracy after each epoch, in percent.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "bench/program.h"
#include "data/data.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

namespace nn = torch::nn;
using torch::indexing::Slice;

struct Options {
  std::string data;
  int epochs = 4;
  int batch = 64;
  double rate = 0.1 * 64 / 128;
  double decay = 1e-4;
  std::int64_t seed = 1;
};

nn::Conv2d conv3x3(int in, int out, int stride) {
  nn::Conv2d conv{nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)};
  nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
  return conv;
}

struct Block : nn::Module {
  Block(int in, int out, int stride)
      : grown{out - in},
        step{stride},
        conv1{register_module("conv1", conv3x3(in, out, stride))},
        conv2{register_module("conv2", conv3x3(out, out, 1))},
        bn1{register_module("bn1", nn::BatchNorm2d{out})},
        bn2{register_module("bn2", nn::BatchNorm2d{out})} {}

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    if (grown == 0) return torch::relu(y + x);
    const torch::Tensor every_other =
        x.index({Slice(), Slice(), Slice(0, {}, step), Slice(0, {}, step)});
    return torch::relu(y + torch::constant_pad_nd(every_other, {0, 0, 0, 0, 0, grown}));
  }

  int grown;
  int step;
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
};

struct ResNet20 : nn::Module {
  ResNet20() {
    body->push_back(conv3x3(3, 16, 1));
    body->push_back(nn::BatchNorm2d{16});
    body->push_back(nn::ReLU{});
    int in = 16;
    for (const int width : {16, 32, 64}) {
      for (int i = 0; i < 3; ++i) {
        body->push_back(Block{in, width, in == width ? 1 : 2});
        in = width;
      }
    }
    register_module("body", body);
    register_module("head", head);
    const torch::NoGradGuard no_grad;
    head->weight.normal_(0, 0.01);
    head->bias.zero_();
  }

  torch::Tensor forward(const torch::Tensor& x) { return head(body->forward(x).mean({2, 3})); }

  nn::Sequential body;
  nn::Linear head{64, 10};
};

struct Samples {
  torch::Tensor images;  // normalised
  torch::Tensor labels;
};

Samples all_of(const data::Dataset& set, const torch::Tensor& mean,
               const torch::Tensor& deviation) {
  std::vector<torch::Tensor> images;
  std::vector<std::int64_t> labels;
  data::Image image;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (const Status status = set.decode(i, image); !status.ok()) throw Error{status};
    images.push_back(
        torch::tensor(at::ArrayRef<std::uint8_t>{image.pixels.data(), image.size()}, torch::kByte)
            .view({image.channels, image.height, image.width}));
    labels.push_back(set.label(i));
  }
  return {torch::stack(images).to(torch::kFloat).sub(mean).div(deviation), torch::tensor(labels)};
}

// Shifts each image by up to 4 pixels and mirrors half of the images.
torch::Tensor augmented(const torch::Tensor& images) {
  const std::int64_t side = images.size(2);
  const torch::Tensor padded = torch::constant_pad_nd(images, {4, 4, 4, 4});
  std::vector<torch::Tensor> views;
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    const auto top = torch::randint(9, {1}).item<std::int64_t>();
    const auto left = torch::randint(9, {1}).item<std::int64_t>();
    const torch::Tensor view =
        padded.index({i, Slice(), Slice(top, top + side), Slice(left, left + side)});
    views.push_back(torch::rand({1}).item<float>() < 0.5F ? view.flip(2) : view);
  }
  return torch::stack(views);
}

double accuracy(ResNet20& network, const Samples& samples) {
  const torch::NoGradGuard no_grad;
  network.eval();
  double right = 0;
  for (std::int64_t from = 0; from < samples.labels.size(0); from += 100) {
    const Slice part{from, from + 100};
    right += network.forward(samples.images.index({part}))
                 .argmax(1)
                 .eq(samples.labels.index({part}))
                 .sum()
                 .item<double>();
  }
  network.train();
  return 100 * right / static_cast<double>(samples.labels.size(0));
}

nlohmann::ordered_json train(const Options& options) {
  at::set_num_threads(1);
  torch::manual_seed(options.seed);
  const data::Data data = data::open_data(options.data).value();
  if (data.channels != 3 || data.height == 0 || data.classes.size() != 10)
    throw Error{
        Status{Code::InvalidInput, "the images must have 3 channels, one size and 10 classes"}};
  const auto by_channel = [](const std::vector<double>& values) {
    return torch::tensor(values).to(torch::kFloat).view({1, 3, 1, 1});
  };
  const torch::Tensor mean = by_channel(data.normalization.mean);
  const torch::Tensor deviation = by_channel(data.normalization.deviation);
  const Samples samples = all_of(*data.train, mean, deviation);
  const Samples unseen = all_of(*data.validation, mean, deviation);

  ResNet20 network;
  std::vector<torch::Tensor> matrices;
  std::vector<torch::Tensor> vectors;  // biases and batch norms, without weight decay
  for (const torch::Tensor& each : network.parameters())
    (each.dim() > 1 ? matrices : vectors).push_back(each);
  const auto settings = [&](double decay) {
    return torch::optim::SGDOptions(options.rate).momentum(0.9).nesterov(true).weight_decay(decay);
  };
  torch::optim::SGD decayed{matrices, settings(options.decay)};
  torch::optim::SGD free{vectors, settings(0)};

  const std::int64_t steps = samples.labels.size(0) / options.batch;
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const torch::Tensor order = torch::randperm(samples.labels.size(0));
    for (std::int64_t step = 0; step < steps; ++step) {
      const torch::Tensor chosen =
          order.index({Slice(step * options.batch, (step + 1) * options.batch)});
      decayed.zero_grad();
      free.zero_grad();
      nn::functional::cross_entropy(
          network.forward(augmented(samples.images.index_select(0, chosen))),
          samples.labels.index_select(0, chosen))
          .backward();
      const double passed = epoch + static_cast<double>(step) / static_cast<double>(steps);
      const double part = passed < 1 ? 0.1 + 0.9 * passed  // one epoch of warm-up, then down to 0
                                     : 1 - (passed - 1) / (options.epochs - 1);
      for (torch::optim::SGD* optimizer : {&decayed, &free}) {
        auto& group = optimizer->param_groups()[0].options();
        static_cast<torch::optim::SGDOptions&>(group).lr(options.rate * part);
        optimizer->step();
      }
    }
    curve.push_back(accuracy(network, unseen));
  }
  return {{"seed", options.seed}, {"accuracy", curve}};
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Trains resnet20 on small images with libtorch alone", "plain_training"};
  sluice::bench::Options options;
  app.add_option("--data", options.data, "Data, as in sluice train")->required();
  app.add_option("--epochs", options.epochs, "Epochs; the first one is the warm-up")
      ->check(CLI::Range(2, 1000));
  app.add_option("--batch", options.batch, "Images per step")->check(CLI::Range(1, 4096));
  app.add_option("--rate", options.rate, "The highest learning rate");
  app.add_option("--seed", options.seed, "Seed of all random numbers");
  app.footer(
      "Exit status: 0 done, 2 wrong usage or data.\n"
      "Example:\n"
      "  plain_training --data pack:cifar.pack --epochs 4");
  return sluice::bench::run_program(app, argc, argv, [&] {
    sluice::base::print("{}\n", sluice::bench::train(options).dump());
    return 0;
  });
}
