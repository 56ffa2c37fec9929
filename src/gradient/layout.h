// gradient_spec.h - a gradient tensor, as all ranks must know it.
//
// layout.h - where each gradient lies in the pool.
//
// Slots follow each other in `order`, each from a multiple of 64 bytes on, so that any run of slots
// of one type is one array. What lies between them is zero, and travels along.
// Thread-safety: immutable once built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "buckets/buckets.h"
#include "sluice/types.h"

namespace sluice::gradient {

struct GradientSpec {
  std::string name;
  std::size_t count = 0;  // elements
  DataType type = DataType::F32;
  bool may_be_sparse = true;  // false: a bias or the like, always sent whole
  std::string strides = {};   // "": its elements lie in order
  bool operator==(const GradientSpec&) const = default;
};

inline constexpr std::size_t kSlotAlignment = 64;

class PoolLayout {
 public:
  // REQUIRES: order is a permutation of the gradients' numbers.
  PoolLayout(const std::vector<GradientSpec>& gradients, std::vector<std::size_t> order);

  std::size_t size() const { return order_.size(); }    // gradients
  std::size_t bytes() const { return begins_.back(); }  // of the pool
  const std::vector<std::size_t>& order() const { return order_; }

  // Of gradient i.
  std::size_t position(std::size_t i) const { return positions_[i]; }
  std::size_t offset(std::size_t i) const { return begins_[positions_[i]]; }
  std::size_t bytes_of(std::size_t i) const { return sizes_[positions_[i]].bytes; }

  // By position; where the slot at size() would begin is the pool's end.
  std::size_t begin(std::size_t position) const { return begins_[position]; }
  const std::vector<buckets::GradientSize>& sizes() const { return sizes_; }

 private:
  std::vector<std::size_t> order_;
  std::vector<std::size_t> positions_;        // by gradient
  std::vector<buckets::GradientSize> sizes_;  // by position
  std::vector<std::size_t> begins_;           // by position, and the end
};

// Backward meets the last registered gradients first.
std::vector<std::size_t> reverse_registration(std::size_t gradients);

// `seen` first, as it was seen; then the others in reverse registration.
std::vector<std::size_t> observed_order(const std::vector<std::size_t>& seen,
                                        std::size_t gradients);

}  // namespace sluice::gradient
