#include "engine/eager.h"

#include <cstring>

#include "kernels/reduce.h"

namespace sluice::engine {

const transport::Slot& Eager::slot_of(Rank rank) const {
  return endpoint_.group().slot(rank, number_);
}

void Eager::begin(const Request& request, std::uint64_t signature, std::byte* data) {
  ++number_;
  request_ = request;
  signature_ = signature;
  data_ = data;
  arrived_ = 0;
  const transport::Group& group = endpoint_.group();
  transport::Slot& slot = group.slot(group.rank(), number_);
  slot.signature = signature;
  if (request.count > 0)
    std::memcpy(slot.payload.data(), data, request.count * size_of(request.type));
  slot.number.store(number_, std::memory_order_seq_cst);
  for (Rank peer = 0; peer < group.size(); ++peer) {
    if (peer != group.rank()) group.ring(peer);
  }
}

bool Eager::needs(Rank peer) const {
  return slot_of(peer).number.load(std::memory_order_seq_cst) != number_;
}

Result<bool> Eager::advance() {
  const transport::Group& group = endpoint_.group();
  for (; arrived_ < group.size(); ++arrived_) {
    if (needs(arrived_)) return false;
    const transport::Slot& slot = slot_of(arrived_);
    if (slot.signature != signature_)
      return Status{Code::Mismatch, "its peer means another collective"};
  }
  sources_.clear();
  for (Rank rank = 0; rank < group.size(); ++rank) sources_.push_back(slot_of(rank).payload.data());
  const kernels::Reduction reduction =
      request_.op == ReduceOp::Mean ? kernels::mean_over(group.size(), request_.type)
                                    : kernels::Reduction{.type = request_.type, .op = request_.op};
  if (request_.count > 0) kernels::reduce_into(reduction, data_, sources_, request_.count);
  return true;
}

}  // namespace sluice::engine
