// models.h - networks as tables: what each layer computes and how large its gradients are.
//
// Buckets, the simulator and recipes need no more of a network than this. src/train/models builds
// the networks themselves; a test equates the two, layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/device_speed.h"
#include "sluice/status.h"

namespace sluice::recipe {

// What a network is trained on. Zero stands for what the network was made for.
struct ModelInput {
  int classes = 0;
  int channels = 0;
  int image = 0;  // height and width
};

// A module with parameters of its own, in the order in which they are registered: weight, then
// bias.
struct ModelLayer {
  std::string name;  // "layer1.0.conv1"
  std::int64_t weights = 0;
  std::int64_t biases = 0;       // 0: it has none
  double forward_flops = 0;      // an image's; a multiplication and an addition are two
  bool one_dimensional = false;  // the weights are a scale a channel: neither decayed nor sparse

  std::int64_t gradient_elements() const { return weights + biases; }
};

struct ModelTable {
  std::string name;
  ModelInput input;                // no zeros left
  std::vector<ModelLayer> layers;  // in order of registration, which is that of forward

  std::int64_t gradient_elements() const;
  int gradient_tensors() const;
  double forward_flops() const;  // an image's: convolutions and matrix products
};

// `input` with its zeros filled in. Unknown names are answered with the nearest one.
Result<ModelInput> model_input(std::string_view name, ModelInput input = {});

// An image too small for the network is refused.
Result<ModelTable> model_table(std::string_view name, ModelInput input = {});

}  // namespace sluice::recipe
