// eager.h - `exchange` for small buffers: every rank puts its contribution into its slot, header
// and payload together, and adds up all slots in rank order. The slots are the schedule's scratch
// buffers; nothing is copied twice and nobody waits to leave (control.h says why).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/endpoint.h"
#include "engine/request.h"
#include "sluice/status.h"

namespace sluice {

class Eager {
 public:
  explicit Eager(Endpoint& endpoint) : endpoint_{endpoint} {}

  void begin(const Request& request, std::uint64_t signature, std::byte* data);

  // True once every peer's slot was there and the sum is in place.
  Result<bool> advance();

  Rank waits_for() const { return arrived_; }

 private:
  const Slot& slot_of(Rank rank) const;

  Endpoint& endpoint_;
  std::uint64_t number_ = 0;  // of exchanges so far
  Request request_;
  std::uint64_t signature_ = 0;
  std::byte* data_ = nullptr;
  Rank arrived_ = 0;  // ranks below this one have been seen
  std::vector<const void*> sources_;
};

}  // namespace sluice
