// execution.h - one collective under way at one rank.
//
// advance() moves whatever can be moved and never blocks; the order is the plan's dataflow,
// messages to and from each peer are in order, and at most kWindow of them are outstanding. On a
// node a transfer is told in one message when its bytes lie where the peer can reach them, else in
// staged segments; to another node the bytes go. What a receive takes is combined straight out of
// the senders' memory, or of what has arrived from them, all senders in one pass; what is only
// copied is read from the network to its place.
//
// Thread-safety: one thread at a time. Reused from collective to collective, so that a steady state
// allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/collective.h"
#include "engine/endpoint.h"
#include "engine/plan.h"
#include "kernels/reduce.h"
#include "sluice/status.h"

namespace sluice::engine {

class Execution final : public RunningCollective {
 public:
  explicit Execution(Endpoint& endpoint) : endpoint_{endpoint} {}

  // Begins a collective on `data`; where peers can reach it, `location` has a segment.
  // The plan must outlive it.
  void begin(const Plan& plan, const Request& request, std::uint64_t signature, std::byte* data,
             transport::MemoryLocation location);

  Result<bool> advance() override;
  std::uint64_t moved() const override;
  int step() const override;  // of the oldest unfinished instruction
  int steps() const override;
  Rank waits_for() const override;
  Rank differs() const override { return differs_; }
  bool needs(Rank peer) const override;

 private:
  // How far one source of a receive has come within its present message.
  struct Incoming {
    const std::byte* data = nullptr;
    std::uint64_t left = 0;
    std::uint64_t whole = 0;  // of which that is what is left
    transport::Delivery delivery = transport::Delivery::InPlace;
  };
  struct Progress {
    std::uint32_t waits = 0;
    bool done = false;
    std::uint64_t bytes = 0;       // moved or told of so far
    std::uint64_t posted_end = 0;  // of a send: the channel's count after its last message
  };
  struct Piece {
    std::byte* data = nullptr;
    std::uint64_t offset = 0;  // within the buffer
    std::uint64_t bytes = 0;
  };

  // The contiguous piece of a range that begins `bytes_in` bytes into it; ranges may wrap once.
  Piece piece(const Range& range, std::uint64_t bytes_in) const;
  std::uint64_t bytes_of(const Range& range) const;
  std::byte* buffer(BufferId id) const;

  bool takes_turns() const;
  Result<bool> advance_sends(Rank peer);
  Result<bool> advance_receive(std::uint32_t index);
  void run_local(std::uint32_t index);
  void finish(std::uint32_t index);
  Status look_for(Rank peer, Incoming& incoming);
  Result<const transport::MessageHeader*> header_from(Rank peer);
  Result<std::uint64_t> read_from(Rank peer, const Piece& target);
  bool take(Rank peer, Incoming& incoming);
  bool is_next(std::uint32_t receive, Rank peer) const;
  bool is_remote(Rank peer) const { return !endpoint_.group().is_local(peer); }
  bool has_nothing_from(Rank peer) const;
  kernels::Reduction reduction_of(const Instruction& instruction) const;
  bool may_push(const Instruction& receive) const;
  void store_everywhere(const Instruction& receive, std::byte* target, std::uint64_t bytes);
  void tell_pushed(const Instruction& receive, std::uint64_t bytes);

  Endpoint& endpoint_;
  const Plan* plan_ = nullptr;
  Request request_;
  std::uint64_t signature_ = 0;
  std::byte* data_ = nullptr;
  transport::MemoryLocation location_;
  std::uint64_t element_ = 4;
  std::size_t left_ = 0;  // unfinished instructions
  std::uint64_t moves_ = 0;
  Rank differs_ = kOwn;
  std::vector<Progress> progress_;
  std::vector<std::uint32_t> open_;            // receives and locals that wait for no instruction
  std::vector<std::uint32_t> next_send_;       // of each peer: place in plan.sends_to()
  std::vector<std::uint32_t> next_sent_done_;  // and up to where they are taken
  std::vector<std::uint32_t> next_receive_;    // of each peer: place in plan.receives_from()
  std::vector<Incoming> incoming_;             // of each peer: what is left of its present message
  std::vector<std::byte> scratch_;
  std::vector<const void*> source_data_;
  std::vector<void*> target_data_;
};

}  // namespace sluice::engine
