#include "simulate/backward.h"

#include <algorithm>
#include <cmath>

#include "buckets/buckets.h"

namespace sluice::simulate {
namespace {

struct Gradient {
  double ready = 0;
  double bytes = 0;
  bool dense = false;
};

double wire_bytes(const recipe::Recipe& recipe) { return recipe.wire == WireType::F32 ? 4 : 2; }

// In order of backward: the last layer first, and of a layer what was registered last.
std::vector<Gradient> gradients_of(const recipe::ModelTable& model, const recipe::Recipe& recipe) {
  std::vector<Gradient> gradients;
  const double flops = model.forward_flops();
  double done = 0;
  for (auto layer = model.layers.rbegin(); layer != model.layers.rend(); ++layer) {
    done += layer->forward_flops;
    const double ready = kForwardPart + (1 - kForwardPart) * (flops > 0 ? done / flops : 1);
    const auto add = [&](std::int64_t elements, bool dense) {
      gradients.push_back({ready, wire_bytes(recipe) * static_cast<double>(elements), dense});
    };
    if (layer->biases > 0) add(layer->biases, true);
    add(layer->weights, layer->one_dimensional);
  }
  return gradients;
}

}  // namespace

Result<std::vector<ReadyBucket>> ready_buckets(const recipe::ModelTable& model,
                                               const recipe::Recipe& recipe, double sparsity) {
  const std::vector<Gradient> gradients = gradients_of(model, recipe);
  std::vector<buckets::GradientSize> sizes;
  for (const Gradient& gradient : gradients) {
    const double sent = gradient.dense ? gradient.bytes : gradient.bytes * (1 - sparsity);
    sizes.push_back({.bytes = static_cast<std::size_t>(std::llround(sent))});
  }
  std::vector<buckets::BucketRange> ranges;
  if (recipe.double_buffering) {
    ranges = {{.first = 0, .count = gradients.size()}};
  } else if (recipe.groups.empty()) {
    ranges = buckets::lazy_buckets(sizes, recipe.theta);
  } else {
    Result<std::vector<buckets::BucketRange>> grouped =
        buckets::grouped_buckets(sizes, recipe.groups);
    if (!grouped.ok()) return grouped.status();
    ranges = std::move(grouped).value();
  }
  std::vector<ReadyBucket> buckets;
  for (const buckets::BucketRange& range : ranges) {
    ReadyBucket& bucket = buckets.emplace_back();
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      const Gradient& gradient = gradients[i];
      bucket.ready = std::max(bucket.ready, gradient.ready);
      (gradient.dense ? bucket.dense_bytes : bucket.sparse_bytes) += gradient.bytes;
    }
  }
  return buckets;
}

double norm_bytes(const recipe::ModelTable& model, const recipe::Recipe& recipe) {
  constexpr double kBytesOfANorm = 4;
  double chunks = 0;
  for (const recipe::ModelLayer& layer : model.layers) {
    if (layer.one_dimensional) continue;
    chunks +=
        std::ceil(static_cast<double>(layer.weights) / static_cast<double>(recipe.sparse_chunk));
  }
  return kBytesOfANorm * chunks;
}

}  // namespace sluice::simulate
