#include "engine/collective.h"

#include <cstring>
#include <iterator>

#include "base/format.h"
#include "base/random.h"
#include "kernels/reduce.h"

namespace sluice::engine {

namespace {

constexpr std::uint8_t kNoAlgorithm = 0xFF;

}  // namespace

std::uint64_t packed_kind(const Request& request) {
  const std::uint8_t algorithm =
      request.algorithm == nullptr
          ? kNoAlgorithm
          : static_cast<std::uint8_t>(request.algorithm - built_in_algorithms().data());
  return std::uint64_t{static_cast<std::uint32_t>(request.root)} << 32U |
         std::uint64_t{algorithm} << 24U | static_cast<std::uint64_t>(request.collective) << 16U |
         static_cast<std::uint64_t>(request.type) << 8U | static_cast<std::uint64_t>(request.op);
}

std::optional<Request> unpacked(const Call& call, int ranks) {
  const auto all = built_in_algorithms();
  const std::size_t algorithm = call.kind >> 24U & 0xFF;
  const Request request{.number = call.number,
                        .collective = static_cast<Collective>(call.kind >> 16U & 0xFF),
                        .type = static_cast<DataType>(call.kind >> 8U & 0xFF),
                        .op = static_cast<ReduceOp>(call.kind & 0xFF),
                        .root = static_cast<Rank>(call.kind >> 32U),
                        .algorithm = algorithm < all.size() ? &all[algorithm] : nullptr,
                        .count = call.count};
  const bool possible = (request.algorithm != nullptr || algorithm == kNoAlgorithm) &&
                        static_cast<std::size_t>(request.collective) < std::size(kCollectives) &&
                        size_of(request.type) > 0 && !name(request.op).empty() &&
                        0 <= request.root && request.root < ranks;
  return possible ? std::optional{request} : std::nullopt;
}

std::uint64_t signature_of(const Request& request) {
  return base::mixed({request.number, packed_kind(request), std::uint64_t{request.count}});
}

transport::MessageHeader header_of(const Request& request, std::uint64_t bytes) {
  return {request.signature, request.number, packed_kind(request), request.count, bytes};
}

std::string describe(const Request& request) {
  std::string text =
      base::format("{} of {} {}", name(request.collective), request.count, name(request.type));
  if (is_reduction(request.collective)) text += base::format(" ({})", name(request.op));
  if (has_root(request.collective)) text += base::format(" with root {}", request.root);
  if (request.algorithm != nullptr) text += base::format(" by {}", request.algorithm->name);
  return text;
}

void EagerExchange::begin(const Request& request) {
  ++exchanges_;
  request_ = request;
  arrived_ = 0;
  const transport::Group& group = endpoint_.group();
  transport::Slot& slot = group.slot(group.rank(), exchanges_);
  slot.signature = request.signature;
  if (request.count > 0) std::memcpy(slot.payload.data(), request.data, request.bytes());
  slot.number.store(exchanges_, std::memory_order_seq_cst);
  for (Rank peer = 0; peer < group.size(); ++peer) {
    if (peer != group.rank()) group.ring(peer);
  }
}

bool EagerExchange::needs(Rank peer) const {
  return slot_of(peer).number.load(std::memory_order_seq_cst) != exchanges_;
}

Result<bool> EagerExchange::advance() {
  const int ranks = endpoint_.size();
  for (; arrived_ < ranks; ++arrived_) {
    if (needs(arrived_)) return false;
    if (slot_of(arrived_).signature != request_.signature)
      return Status{Code::Mismatch, "a peer called another collective"};
  }
  sources_.clear();
  for (Rank rank = 0; rank < ranks; ++rank) sources_.push_back(slot_of(rank).payload.data());
  const kernels::Reduction reduction =
      request_.op == ReduceOp::Mean ? kernels::mean_over(ranks, request_.type)
                                    : kernels::Reduction{.type = request_.type, .op = request_.op};
  if (request_.count > 0) kernels::reduce_into(reduction, request_.data, sources_, request_.count);
  return true;
}

}  // namespace sluice::engine
