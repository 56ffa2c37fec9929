#include "train/models/models.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

namespace sluice::train {
namespace {

std::shared_ptr<Model> made(std::string_view name, const ModelOptions& options = {}) {
  return make_model(name, options).value();
}

// Small images, but large enough for the network's last layer.
recipe::ModelInput quick(std::string_view name) {
  recipe::ModelInput input = recipe::model_input(name).value();
  if (input.image == 224) input.image = 96;
  return input;
}

torch::Tensor images_for(const recipe::ModelInput& input, std::int64_t count) {
  torch::manual_seed(7);
  return torch::randn({count, input.channels, input.image, input.image});
}

class EachModel : public testing::TestWithParam<std::string_view> {};

// The order of the parameters is that of the table: for each layer its weight, then its bias.
TEST_P(EachModel, HasTheParametersOfItsTable) {
  const recipe::ModelTable table = recipe::model_table(GetParam()).value();
  const auto parameters = made(GetParam())->named_parameters();
  std::size_t next = 0;
  for (const recipe::ModelLayer& layer : table.layers) {
    ASSERT_LT(next, parameters.size());
    EXPECT_EQ(parameters[next].key(), layer.name + ".weight");
    EXPECT_EQ(parameters[next].value().numel(), layer.weights) << layer.name;
    EXPECT_EQ(parameters[next].value().dim() < 2, layer.one_dimensional) << layer.name;
    ++next;
    if (layer.biases == 0) continue;
    ASSERT_LT(next, parameters.size());
    EXPECT_EQ(parameters[next].key(), layer.name + ".bias");
    EXPECT_EQ(parameters[next].value().numel(), layer.biases) << layer.name;
    ++next;
  }
  EXPECT_EQ(next, parameters.size());
}

// Records the output shapes of every convolution and matrix product of this thread, from torch
// itself. (Input shapes would need a libtorch that is built with assertions like ours.)
thread_local std::vector<std::vector<std::int64_t>> recorded;

void record(const at::RecordFunction& function, at::ObserverContext*) {
  const std::string name = function.name();
  if (name != "aten::conv2d" && name != "aten::addmm") return;
  recorded.push_back(function.outputs()[0].toTensor().sizes().vec());
}

TEST_P(EachModel, ComputesTheOperationsOfItsTableInOrder) {
  const recipe::ModelInput input = quick(GetParam());
  const recipe::ModelTable table = recipe::model_table(GetParam(), input).value();
  const std::shared_ptr<Model> model = made(GetParam(), {.input = input});
  model->eval();
  recorded.clear();
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(nullptr, record).needsOutputs(true));
  const torch::Tensor scores = model->forward(images_for(input, 1));
  at::removeCallback(handle);
  EXPECT_EQ(scores.sizes(), (std::vector<std::int64_t>{1, input.classes}));

  std::size_t next = 0;
  for (const recipe::ModelLayer& layer : table.layers) {
    if (layer.one_dimensional) continue;
    ASSERT_LT(next, recorded.size()) << layer.name;
    const std::vector<std::int64_t>& shape = recorded[next++];
    const torch::Tensor weight = model->named_parameters()[layer.name + ".weight"];
    ASSERT_EQ(shape.size(), static_cast<std::size_t>(weight.dim())) << layer.name;
    EXPECT_EQ(shape[1], weight.size(0)) << layer.name;
    const std::int64_t places = shape.size() == 4 ? shape[2] * shape[3] : 1;
    EXPECT_EQ(layer.forward_flops, 2.0 * static_cast<double>(weight.numel() * places))
        << layer.name;
  }
  EXPECT_EQ(next, recorded.size());
}

TEST_P(EachModel, GivesEveryParameterAFiniteGradient) {
  const recipe::ModelInput input = quick(GetParam());
  const std::shared_ptr<Model> model = made(GetParam(), {.input = input});
  const torch::Tensor labels = torch::arange(2);
  const torch::Tensor loss =
      torch::nll_loss(model->forward(images_for(input, 2)).log_softmax(1), labels);
  // The classifier starts small, so all classes are about equally likely.
  EXPECT_NEAR(loss.item<double>(), std::log(input.classes), 1.5);
  loss.backward();
  for (const auto& parameter : model->named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << parameter.key();
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachModel,
                         testing::ValuesIn(cluster::model_names().begin(),
                                           cluster::model_names().end()),
                         [](const auto& test) { return std::string{test.param}; });

struct Published {
  const char* name;
  std::int64_t elements;
  std::size_t tensors;
};

TEST(Models, HaveThePublishedNumbersOfParameters) {
  for (const Published& published :
       {Published{"resnet50", 25'557'032, 161}, Published{"resnet18", 11'689'512, 62},
        Published{"alexnet", 61'100'840, 16}, Published{"resnet20", 269'722, 59}}) {
    const std::vector<torch::Tensor> parameters = made(published.name)->parameters();
    std::int64_t elements = 0;
    for (const torch::Tensor& parameter : parameters) elements += parameter.numel();
    EXPECT_EQ(elements, published.elements) << published.name;
    EXPECT_EQ(parameters.size(), published.tensors) << published.name;
  }
}

bool same_parameters(const Model& one, const Model& other) {
  const auto a = one.parameters();
  const auto b = other.parameters();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

TEST(Models, HaveTheSameBitsFromTheSameSeedWithAnyTorchGenerator) {
  const std::shared_ptr<Model> one = made("resnet20", {.seed = 3});
  torch::manual_seed(99);
  EXPECT_TRUE(same_parameters(*one, *made("resnet20", {.seed = 3})));
  EXPECT_FALSE(same_parameters(*one, *made("resnet20", {.seed = 4})));
}

TEST(Models, LayersOfOneShapeStartDifferently) {
  const auto parameters = made("resnet20")->named_parameters();
  EXPECT_FALSE(
      torch::equal(parameters["layer1.0.conv1.weight"], parameters["layer1.0.conv2.weight"]));
}

TEST(ResNet, ABlockWithALastScaleOfZeroIsItsShortcut) {
  const std::shared_ptr<Model> model =
      made("resnet18", {.input = {.classes = 5, .image = 64}, .zero_init_last_gamma = true});
  int zero = 0;
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.value().abs().max().item<double>() == 0 &&
        parameter.key().find(".bias") == std::string::npos) {
      EXPECT_NE(parameter.key().find(".bn2.weight"), std::string::npos) << parameter.key();
      ++zero;
    }
  }
  EXPECT_EQ(zero, 8);
}

TEST(AlexNet, DropoutIsAFunctionOfTheSeed) {
  const recipe::ModelInput input{.classes = 10, .channels = 3, .image = 64};
  const std::shared_ptr<Model> model = made("alexnet", {.input = input});
  const torch::Tensor images = images_for(input, 2);
  const auto scores = [&](std::uint64_t seed) {
    model->seed_dropout(seed);
    return model->forward(images);
  };
  const torch::Tensor first = scores(5);
  EXPECT_FALSE(torch::equal(first, model->forward(images)));
  EXPECT_FALSE(torch::equal(first, scores(6)));
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(first, scores(5)));
  model->eval();
  EXPECT_TRUE(torch::equal(model->forward(images), model->forward(images)));
}

TEST(AlexNet, DropoutOnAGpuIsAFunctionOfTheSeed) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU, or a libtorch without CUDA";
  const recipe::ModelInput input{.classes = 10, .channels = 3, .image = 64};
  const std::shared_ptr<Model> model = made("alexnet", {.input = input});
  model->to(torch::kCUDA);
  const torch::Tensor images = images_for(input, 2).to(torch::kCUDA);
  model->seed_dropout(5);
  const torch::Tensor first = model->forward(images);
  EXPECT_FALSE(torch::equal(first, model->forward(images)));
  model->seed_dropout(5);
  EXPECT_TRUE(torch::allclose(first, model->forward(images)));
}

TEST(Models, AnUnknownNameIsAnError) {
  EXPECT_EQ(make_model("alexnett").status().message(),
            "no model is called \"alexnett\"; did you mean alexnet?");
}

TEST(SmoothedCrossEntropy, MatchesItsDefinition) {
  torch::manual_seed(1);
  const torch::Tensor scores = torch::randn({6, 5}, torch::kFloat64);
  const torch::Tensor labels = torch::tensor({0, 4, 2, 2, 1, 3});
  for (const double smoothing : {0.0, 0.1, 0.5}) {
    double sum = 0;
    for (std::int64_t i = 0; i < 6; ++i) {
      double total = 0;
      for (std::int64_t c = 0; c < 5; ++c) total += std::exp(scores[i][c].item<double>());
      for (std::int64_t c = 0; c < 5; ++c) {
        const bool own = c == labels[i].item<std::int64_t>();
        const double meant = (own ? 1 - smoothing : 0) + smoothing / 5;
        sum -= meant * std::log(std::exp(scores[i][c].item<double>()) / total);
      }
    }
    EXPECT_NEAR(smoothed_cross_entropy(scores, labels, smoothing).item<double>(), sum / 6, 1e-12);
  }
}

}  // namespace
}  // namespace sluice::train
