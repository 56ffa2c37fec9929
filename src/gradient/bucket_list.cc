#include "gradient/bucket_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "buckets/buckets.h"

namespace sluice::gradient {
namespace {

// Every bucket pays the latency of a whole collective, which is worth it only while others are not
// ready yet.
std::size_t theta_of(const GradientOptions& options) {
  return options.double_buffering ? SIZE_MAX : options.theta;
}

}  // namespace

BucketList::BucketList(const Plan& plan, StepContext& step) : plan_{plan}, step_{&step} {
  const std::vector<buckets::GradientSize>& sizes = plan.layout.sizes();
  whole_ranges_ = plan.options.groups.empty()
                      ? buckets::lazy_buckets(sizes, theta_of(plan.options))
                      : buckets::grouped_buckets(sizes, plan.options.groups).value();
  sent_ = sizes;
  ranges_.reserve(sizes.size());
  whole_.reserve(sizes.size());
  sparse_.reserve(sizes.size());
  buckets_.reserve(sizes.size());
  set_whole();
}

void BucketList::clear() {
  buckets_.clear();
  whole_.clear();
  sparse_.clear();
}

void BucketList::add_whole(const buckets::BucketRange& range) {
  const bool narrowed = plan_.wire != nullptr && range.type == DataType::F32;
  whole_.emplace_back(
      DenseBucket::Place{
          .gradients = plan_.gradients,
          .layout = plan_.layout,
          .range = range,
          .number = buckets_.size(),
          .wire = narrowed ? plan_.wire->at(plan_.layout.begin(range.first)) : nullptr},
      *step_);
  buckets_.push_back(&whole_.back());
}

void BucketList::set_whole() {
  clear();
  ranges_ = whole_ranges_;
  for (const buckets::BucketRange& range : ranges_) add_whole(range);
}

void BucketList::set_sparse(const SparseContext& holding) {
  clear();
  if (plan_.options.groups.empty()) {
    const SparseChunks& chunks = *holding.chunks;
    for (std::size_t position = 0; position < sent_.size(); ++position) {
      const std::size_t i = plan_.layout.order()[position];
      if (chunks.whole(i)) continue;
      // Not 0: of no elements it would join gradients of another type.
      sent_[position].bytes = std::max<std::size_t>(
          1, selected_elements(chunks, i, holding.step.selected) * sizeof(float));
    }
    buckets::lazy_buckets(sent_, theta_of(plan_.options), ranges_);
  } else {
    ranges_ = whole_ranges_;
  }
  for (const buckets::BucketRange& range : ranges_) {
    if (range.type != DataType::F32) {
      add_whole(range);
      continue;
    }
    std::byte* const apart =
        plan_.apart != nullptr ? plan_.apart->at(plan_.layout.begin(range.first)) : nullptr;
    sparse_.emplace_back(SparseBucket::Place{.gradients = plan_.gradients,
                                             .layout = plan_.layout,
                                             .range = range,
                                             .number = buckets_.size(),
                                             .apart = apart},
                         holding, *step_);
    buckets_.push_back(&sparse_.back());
  }
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
