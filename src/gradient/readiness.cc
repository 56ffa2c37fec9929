#include "gradient/readiness.h"

#include <algorithm>

namespace sluice::gradient {

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
  while (leavable_ < missing_.size() && missing_[leavable_] == 0) ++leavable_;
  return leavable_;
}

void Readiness::clear() {
  std::copy(sizes_.begin(), sizes_.end(), missing_.begin());
  std::fill(ready_.begin(), ready_.end(), false);
  marked_.clear();
  leavable_ = 0;
}

}  // namespace sluice::gradient
