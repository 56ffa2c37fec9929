// models.h - models as tables: the operations and the gradient sizes of each layer.
//
// Recipes, buckets and the simulator read these tables. src/train/models builds the models; a test
// compares the two layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/device_speed.h"
#include "sluice/status.h"

namespace sluice::recipe {

// The input of a model. Zero means the model's usual value.
struct ModelInput {
  int classes = 0;
  int channels = 0;
  int image = 0;  // height and width
};

// A module with parameters, which are registered in this order: weight, then bias.
struct ModelLayer {
  std::string name;  // "layer1.0.conv1"
  std::int64_t weights = 0;
  std::int64_t biases = 0;       // 0: no bias
  double forward_flops = 0;      // of one image; a multiply-add counts as two
  bool one_dimensional = false;  // one scale per channel: never sparse, by default not decayed

  std::int64_t gradient_elements() const { return weights + biases; }
};

struct ModelTable {
  std::string name;
  ModelInput input;                // without zeros
  std::vector<ModelLayer> layers;  // in order of registration, which is the order of forward

  std::int64_t gradient_elements() const;
  int gradient_tensors() const;
  double forward_flops() const;  // of one image: convolutions and matrix products
};

// `input` with its zeros replaced. For an unknown name the error suggests the nearest one.
Result<ModelInput> model_input(std::string_view name, ModelInput input = {});

// Fails if the image is too small for the model.
Result<ModelTable> model_table(std::string_view name, ModelInput input = {});

}  // namespace sluice::recipe
