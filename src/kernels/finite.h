// finite.h - whether an array holds anything that is not a number one can compute with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/types.h"

namespace sluice::kernels {

// How many elements are infinite or NaN. Costs next to nothing beyond reading them while there are
// none. REQUIRES: type is a float type, `from` aligned to it. Thread-safety: no state.
std::uint64_t count_not_finite(DataType type, const void* from, std::size_t count);

}  // namespace sluice::kernels
