#include "gradient/wire.h"

#include <array>
#include <cstdint>

namespace sluice {

WireType agreed_wire(Communicator& communicator, const GradientOptions& options) {
  if (options.wire == WireType::F32 || options.force_wire) return options.wire;
  const std::int64_t node = communicator.node();
  std::array<std::int64_t, 2> bounds = {node, -node};  // the least, and minus the largest
  communicator
      .all_reduce(bounds.data(), bounds.size(), {.type = DataType::I64, .op = ReduceOp::Min})
      .wait();
  return bounds[0] == -bounds[1] ? WireType::F32 : options.wire;
}

}  // namespace sluice
