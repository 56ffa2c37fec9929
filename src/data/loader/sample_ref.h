// sample_ref.h - a sample, and the epoch whose view of it is meant.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::data {

struct SampleRef {
  std::uint64_t epoch = 0;
  std::size_t sample = 0;
  bool operator==(const SampleRef&) const = default;
};

}  // namespace sluice::data
