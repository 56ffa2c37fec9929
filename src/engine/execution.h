// execution.h - runs a plan for one collective at one rank.
//
// advance() moves the data that can be moved, and never blocks. The order is the plan's dataflow;
// messages to and from each peer are in order, and at most kWindow of them are outstanding. Inside
// a node, one message names a transfer's bytes where the peer can read them in place; other bytes
// are copied to staged segments first. Between nodes the bytes themselves are sent. A receive that
// reduces reads all its sources in one pass, directly from the senders' memory or from the
// network's buffers. A receive that only copies reads from the network directly into its buffer.
//
// Thread-safety: one thread at a time. Reused from collective to collective, so that a steady state
// allocates nothing.
#pragma once

#include <cstdint>
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

  void begin(const Request& request) override;  // REQUIRES: request.choice->plan
  Result<bool> advance() override;
  std::uint64_t moved() const override { return moves_ + endpoint_.moved(); }
  int step() const override;  // of the oldest unfinished instruction
  int steps() const override;
  Rank waits_for() const override;
  Rank mismatched_peer() const override { return mismatched_peer_; }
  bool needs(Rank peer) const override;

 private:
  // The unread rest of the oldest message from a peer.
  struct Incoming {
    const std::byte* data = nullptr;
    std::uint64_t left = 0;
    std::uint64_t whole = 0;  // the first value of `left`
    transport::Delivery delivery = transport::Delivery::InPlace;
  };
  struct Progress {
    std::uint32_t waits = 0;
    bool done = false;
    std::uint64_t bytes = 0;       // moved or posted so far
    std::uint64_t posted_end = 0;  // of a send: the endpoint's count after its last message
  };
  // A buffer of this rank in the present collective.
  struct BufferPlace {
    const Chunking* chunking = nullptr;
    std::int64_t count = 0;  // elements
    std::byte* data = nullptr;
  };
  struct Piece {
    std::byte* data = nullptr;
    std::uint64_t offset = 0;  // within the buffer
    std::uint64_t bytes = 0;
  };

  // The contiguous piece of a range from its byte `bytes_in` on; a range may wrap once.
  Piece piece(const Range& range, std::uint64_t bytes_in) const;
  std::uint64_t bytes_of(const Range& range) const;
  void place_buffers();
  const BufferPlace& buffer(BufferId id) const { return buffers_[static_cast<std::size_t>(id)]; }
  kernels::Reduction reduction_of(const Instruction& instruction) const;

  bool has_several_long_senders() const;
  Result<bool> advance_sends(Rank peer);
  Result<bool> advance_receive(std::uint32_t index);
  void run_local(std::uint32_t index);
  void finish(std::uint32_t index);

  bool is_next(std::uint32_t receive, Rank peer) const;
  bool has_nothing_from(Rank peer) const;
  Result<bool> has_message_from(Rank remote);
  Status find_message(Rank peer, Incoming& incoming);
  bool take(Rank peer, const Incoming& incoming);

  bool may_push(const Instruction& receive) const;
  void store_everywhere(const Instruction& receive, std::byte* target, std::uint64_t bytes);
  void post_pushed(const Instruction& receive, std::uint64_t bytes);

  Endpoint& endpoint_;
  Request request_;
  const Plan* plan_ = nullptr;
  std::uint64_t element_ = 4;     // bytes of an element
  std::size_t left_ = 0;          // unfinished instructions
  std::uint64_t most_bytes_ = 0;  // of a buffer
  std::uint64_t moves_ = 0;
  Rank mismatched_peer_ = kOwn;
  std::vector<Progress> progress_;             // of each instruction
  std::vector<std::uint32_t> open_;            // receives and locals that wait for no instruction
  std::vector<std::uint32_t> next_send_;       // for each peer: index in plan.sends_to()
  std::vector<std::uint32_t> next_sent_done_;  // likewise, the oldest send that is not taken yet
  std::vector<std::uint32_t> next_receive_;    // for each peer: index in plan.receives_from()
  std::vector<Incoming> incoming_;             // for each peer
  std::vector<std::byte> scratch_;
  std::vector<BufferPlace> buffers_;
  std::vector<const void*> source_data_;
  std::vector<void*> target_data_;
};

}  // namespace sluice::engine
