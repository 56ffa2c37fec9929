// verdict_handover.h - before a communicator first uses a schedule, rank 0 tells all ranks whether
// it is proven.
//
// Only rank 0 proves, in a thread of its own, so that it reports to its peers meanwhile. Its
// verdict travels down a binary tree of the ranks, as the first message of the collective: rank r
// has it from r without its lowest set bit. All ranks agree which collective is the first to use a
// schedule, because they make the same calls and the same choices. A rank that runs ahead waits
// here, and so executes nothing that is not proven.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "engine/collective.h"
#include "engine/endpoint.h"
#include "sluice/status.h"

namespace sluice::engine {

class VerdictHandover final : public RunningCollective {
 public:
  explicit VerdictHandover(Endpoint& endpoint) : endpoint_{endpoint} {}

  // REQUIRES: request.first_use. At rank 0 it starts the proof, which may take seconds.
  void begin(const Request& request) override;
  // True when this rank has passed the verdict on. The error says that there is no proof.
  Result<bool> advance() override;
  std::uint64_t moved() const override { return moves_ + endpoint_.moved(); }
  int step() const override { return proves() ? transport::kProvingStep : 0; }
  int steps() const override { return 0; }
  Rank waits_for() const override;
  Rank mismatched_peer() const override { return parent_; }
  bool needs(Rank peer) const override { return peer == waits_for(); }

  // Whether rank 0 proves the schedule that this rank waits for, and is heard from. That is no
  // stall.
  bool is_being_proven() const;

 private:
  bool proves() const { return proving_.load(std::memory_order_acquire); }
  Result<bool> receive();
  Rank next_child(Rank child) const;
  Rank unsent_child() const;
  bool is_sent_to(Rank child) const;

  Endpoint& endpoint_;
  Request request_;
  Rank parent_ = kOwn;
  bool known_ = false;
  std::atomic<bool> proving_{false};
  Status verdict_;       // not to be read while proves()
  std::byte message_{};  // what is sent to ranks of other nodes
  Rank child_ = 0;       // the next child to send to; group size: none is left
  std::uint64_t moves_ = 0;
  std::jthread prover_;  // the last member: the others outlive the proof
};

}  // namespace sluice::engine
