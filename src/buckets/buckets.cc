#include "buckets/buckets.h"

#include <algorithm>

#include "base/format.h"

namespace sluice::buckets {
namespace {

class BucketBuilder {
 public:
  explicit BucketBuilder(std::vector<BucketRange>& closed) : closed_{closed} { closed_.clear(); }

  void add(const GradientSize& gradient) {
    if (bytes_ > 0 && gradient.bytes > 0 && gradient.type != open_.type) close();
    if (open_.count == 0 || (bytes_ == 0 && gradient.bytes > 0)) open_.type = gradient.type;
    ++open_.count;
    bytes_ += gradient.bytes;
  }

  void close() {
    if (open_.count == 0) return;
    closed_.push_back(open_);
    open_ = {.first = open_.first + open_.count};
    bytes_ = 0;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<BucketRange>& closed_;
  BucketRange open_;
  std::size_t bytes_ = 0;  // of open_
};

}  // namespace

std::vector<BucketRange> lazy_buckets(std::span<const GradientSize> gradients, std::size_t theta) {
  std::vector<BucketRange> buckets;
  lazy_buckets(gradients, theta, buckets);
  return buckets;
}

void lazy_buckets(std::span<const GradientSize> gradients, std::size_t theta,
                  std::vector<BucketRange>& buckets) {
  BucketBuilder builder{buckets};
  for (const GradientSize& gradient : gradients) {
    builder.add(gradient);
    if (builder.bytes() >= std::max<std::size_t>(theta, 1)) builder.close();
  }
  builder.close();
}

Result<std::vector<BucketRange>> grouped_buckets(std::span<const GradientSize> gradients,
                                                 std::span<const int> groups) {
  std::size_t grouped = 0;
  for (const int count : groups) {
    if (count < 1) {
      return Status{
          Code::InvalidArgument,
          base::format("groups {} give a bucket {} gradients; each bucket needs at least 1",
                       base::join(groups, ", "), count)};
    }
    grouped += static_cast<std::size_t>(count);
  }
  if (grouped != gradients.size()) {
    return Status{
        Code::InvalidArgument,
        base::format("groups {} hold {} gradients, but there are {}; put each gradient into "
                     "one group, in the order of backward",
                     base::join(groups, ", "), grouped, gradients.size())};
  }
  std::vector<BucketRange> buckets;
  BucketBuilder builder{buckets};
  auto next = gradients.begin();
  for (const int count : groups) {
    for (int k = 0; k < count; ++k) builder.add(*next++);
    builder.close();
  }
  return buckets;
}

}  // namespace sluice::buckets
