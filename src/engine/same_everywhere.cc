#include "engine/same_everywhere.h"

#include <array>
#include <bit>

namespace sluice::engine {

bool same_everywhere(Communicator& communicator, std::uint64_t value) {
  const auto own = std::bit_cast<std::int64_t>(value);
  // ~ turns the order round: one call finds the smallest and the largest.
  std::array<std::int64_t, 2> ends{own, ~own};
  communicator.all_reduce(ends.data(), ends.size(), {.type = DataType::I64, .op = ReduceOp::Min})
      .wait();
  return ends[0] == ~ends[1];
}

}  // namespace sluice::engine
