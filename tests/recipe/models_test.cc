#include "recipe/models.h"

#include <gtest/gtest.h>

namespace sluice::recipe {
namespace {

struct Published {
  const char* name;
  std::int64_t elements;
  int tensors;
  double multiply_adds;  // of one image, in convolutions and matrix products
};

void PrintTo(const Published& published, std::ostream* out) { *out << published.name; }

class ModelTables : public testing::TestWithParam<Published> {};

TEST_P(ModelTables, HaveThePublishedSizes) {
  const ModelTable table = model_table(GetParam().name).value();
  EXPECT_EQ(table.gradient_elements(), GetParam().elements);
  EXPECT_EQ(table.gradient_tensors(), GetParam().tensors);
  EXPECT_DOUBLE_EQ(table.forward_flops(), 2 * GetParam().multiply_adds);
}

// lenet and smallconv are computed by hand.
INSTANTIATE_TEST_SUITE_P(
    All, ModelTables,
    testing::Values(Published{"lenet", 61'706, 10,
                              784 * 6 * 25 + 100 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10},
                    Published{"smallconv", 34'714, 11,
                              256 * 16 * 75 + 256 * 32 * 144 + 64 * 64 * 288 + 1024 * 10},
                    Published{"resnet20", 269'722, 59, 40'551'040},
                    Published{"resnet18", 11'689'512, 62, 1'814'073'344},
                    Published{"resnet34", 21'797'672, 110, 3'663'761'408},
                    Published{"resnet50", 25'557'032, 161, 4'089'184'256},
                    Published{"alexnet", 61'100'840, 16, 714'188'480},
                    Published{"alexnet_bn", 61'103'144, 26, 714'188'480}),
    [](const auto& test) { return std::string{test.param.name}; });

TEST(ModelTable, OneDimensionalLayersAreTheBatchNorms) {
  const ModelTable table = model_table("resnet50").value();
  for (const ModelLayer& layer : table.layers) {
    const bool norm = layer.name.find("bn") != std::string::npos ||
                      layer.name.find("downsample.1") != std::string::npos;
    EXPECT_EQ(layer.one_dimensional, norm) << layer.name;
    EXPECT_EQ(layer.forward_flops == 0, norm) << layer.name;
  }
}

TEST(ModelTable, OtherClassesChangeTheLastLayerOnly) {
  const ModelTable usual = model_table("resnet18").value();
  const ModelTable few = model_table("resnet18", {.classes = 7}).value();
  ASSERT_EQ(few.layers.size(), usual.layers.size());
  EXPECT_EQ(few.layers.back().weights, 512 * 7);
  EXPECT_EQ(few.layers.back().biases, 7);
  EXPECT_EQ(usual.gradient_elements() - few.gradient_elements(), 513 * 993);
}

TEST(ModelTable, HalfTheImageSizeIsAQuarterOfTheConvolutions) {
  const ModelTable large = model_table("resnet50").value();
  const ModelTable small = model_table("resnet50", {.image = 112}).value();
  EXPECT_EQ(small.gradient_elements(), large.gradient_elements());
  EXPECT_DOUBLE_EQ(small.layers[0].forward_flops * 4, large.layers[0].forward_flops);
  EXPECT_DOUBLE_EQ(small.layers.back().forward_flops, large.layers.back().forward_flops);
}

TEST(ModelTable, InvalidInputIsAnError) {
  EXPECT_EQ(model_table("resnet5").status().message(),
            "no model is called \"resnet5\"; did you mean resnet50?");
  EXPECT_EQ(model_table("transformer").status().message(),
            "no model is called \"transformer\"; there are lenet, smallconv, resnet20, resnet18, "
            "resnet34, resnet50, alexnet, alexnet_bn");
  EXPECT_EQ(model_table("alexnet", {.image = 32}).status().message(),
            "images of 32x32 are too small for alexnet");
  EXPECT_EQ(
      model_table("lenet", {.classes = -1}).status().message(),
      "lenet cannot have -1 classes, 0 channels and images of 0x0: use values of at least 0, and "
      "images of at most 8192x8192");
}

}  // namespace
}  // namespace sluice::recipe
