#include "engine/collective.h"

#include "base/format.h"
#include "base/random.h"
#include "sluice/algorithms.h"

namespace sluice::engine {

std::uint64_t packed_kind(const Request& request) {
  return std::uint64_t{static_cast<std::uint32_t>(request.root)} << 32U |
         std::uint64_t{request.algorithm} << 24U |
         static_cast<std::uint64_t>(request.collective) << 16U |
         static_cast<std::uint64_t>(request.type) << 8U | static_cast<std::uint64_t>(request.op);
}

Request unpacked(std::uint64_t number, std::uint64_t kind, std::uint64_t count) {
  return {number,
          static_cast<Collective>(kind >> 16U & 0xFF),
          static_cast<DataType>(kind >> 8U & 0xFF),
          static_cast<ReduceOp>(kind & 0xFF),
          static_cast<Rank>(kind >> 32U),
          static_cast<std::uint8_t>(kind >> 24U & 0xFF),
          count};
}

std::uint64_t signature_of(const Request& request) {
  return base::mixed({request.number, packed_kind(request), std::uint64_t{request.count}});
}

transport::MessageHeader header_of(const Request& request, std::uint64_t signature,
                                   std::uint64_t bytes) {
  return {signature, request.number, packed_kind(request), request.count, bytes};
}

std::string describe(const Request& request) {
  std::string text =
      base::format("{} of {} {}", name(request.collective), request.count, name(request.type));
  if (is_reduction(request.collective)) text += base::format(" ({})", name(request.op));
  if (has_root(request.collective)) text += base::format(" with root {}", request.root);
  const auto all = built_in_algorithms();
  if (request.algorithm < all.size()) text += base::format(" by {}", all[request.algorithm].name);
  return text;
}

}  // namespace sluice::engine
