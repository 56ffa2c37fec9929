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

Readiness::Readiness(const PoolLayout& layout, const std::vector<buckets::BucketRange>& buckets)
    : layout_{&layout}, bucket_of_(layout.size()), ready_(layout.size(), false) {
  marked_.reserve(layout.size());
  sizes_.reserve(layout.size());
  missing_.reserve(layout.size());
  set_buckets(buckets);
}

void Readiness::set_buckets(const std::vector<buckets::BucketRange>& buckets) {
  sizes_.clear();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (std::size_t k = 0; k < buckets[b].count; ++k) bucket_of_[buckets[b].first + k] = b;
    sizes_.push_back(buckets[b].count);
  }
  missing_ = sizes_;
}

std::size_t Readiness::mark(std::size_t i) {
  ready_[i] = true;
  marked_.push_back(i);
  --missing_[bucket_of(i)];
  while (sendable_ < missing_.size() && missing_[sendable_] == 0) ++sendable_;
  return sendable_;
}

void Readiness::clear() {
  std::copy(sizes_.begin(), sizes_.end(), missing_.begin());
  std::fill(ready_.begin(), ready_.end(), false);
  marked_.clear();
  sendable_ = 0;
}

}  // namespace sluice::gradient
