#include "gradient/wire/wire.h"

#include "engine/same_everywhere.h"

namespace sluice::gradient {

WireType agreed_wire(Communicator& communicator, const GradientOptions& options) {
  if (options.wire == WireType::F32 || options.force_wire) return options.wire;
  const bool on_one_node =
      engine::same_everywhere(communicator, static_cast<std::uint64_t>(communicator.node()));
  return on_one_node ? WireType::F32 : options.wire;
}

}  // namespace sluice::gradient
