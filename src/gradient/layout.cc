#include "gradient/layout.h"

#include <algorithm>

namespace sluice::gradient {

PoolLayout::PoolLayout(const std::vector<GradientSpec>& gradients, std::vector<std::size_t> order)
    : order_{std::move(order)}, positions_(order_.size()) {
  std::size_t begin = 0;
  for (std::size_t position = 0; position < order_.size(); ++position) {
    const GradientSpec& gradient = gradients[order_[position]];
    const std::size_t bytes = gradient.count * size_of(gradient.type);
    positions_[order_[position]] = position;
    sizes_.push_back({bytes, gradient.type});
    begins_.push_back(begin);
    begin += (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }
  begins_.push_back(begin);
}

std::vector<std::size_t> reverse_registration(std::size_t gradients) {
  return observed_order({}, gradients);
}

std::vector<std::size_t> observed_order(const std::vector<std::size_t>& seen,
                                        std::size_t gradients) {
  std::vector<std::size_t> order = seen;
  std::vector<bool> placed(gradients, false);
  for (const std::size_t i : seen) placed[i] = true;
  for (std::size_t i = gradients; i-- > 0;) {
    if (!placed[i]) order.push_back(i);
  }
  return order;
}

}  // namespace sluice::gradient
