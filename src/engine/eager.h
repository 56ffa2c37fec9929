// eager.h - `exchange` for small buffers: every rank puts its contribution into its slot, header
// and payload together, and adds up all slots in rank order. The slots are the schedule's scratch
// buffers; nothing is copied twice and nobody waits to leave (control.h says why).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/collective.h"
#include "engine/endpoint.h"
#include "sluice/status.h"

namespace sluice::engine {

class Eager final : public RunningCollective {
 public:
  explicit Eager(Endpoint& endpoint) : endpoint_{endpoint} {}

  void begin(const Request& request, std::uint64_t signature, std::byte* data);

  Result<bool> advance() override;
  std::uint64_t moved() const override {
    return number_ * static_cast<std::uint64_t>(endpoint_.group().size() + 1) +
           static_cast<std::uint64_t>(arrived_);
  }
  int step() const override { return 1; }
  int steps() const override { return 1; }
  Rank waits_for() const override { return arrived_ < endpoint_.group().size() ? arrived_ : kOwn; }
  Rank differs() const override { return arrived_; }
  bool needs(Rank peer) const override;

 private:
  const transport::Slot& slot_of(Rank rank) const;

  Endpoint& endpoint_;
  std::uint64_t number_ = 0;  // of exchanges so far
  Request request_;
  std::uint64_t signature_ = 0;
  std::byte* data_ = nullptr;
  Rank arrived_ = 0;  // ranks below this one have been seen
  std::vector<const void*> sources_;
};

}  // namespace sluice::engine
