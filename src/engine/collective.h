// collective.h - one collective at one rank: the request, and the interface of its execution.
//
// EagerExchange, at the end, is the execution of `exchange` on small buffers. Execution
// (execution.h) runs everything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/endpoint.h"
#include "kernels/reduce.h"
#include "sluice/algorithms.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "sluice/types.h"

namespace sluice::engine {

struct Choice;
class ProgressHooks;

// The record of one collective: the call fills it in, both queues carry it, and the execution reads
// it.
struct Request {
  // The user's call, the agreed fields: they must be equal on all ranks.
  std::uint64_t number = 0;  // position among the calls of its communicator, from 1
  Collective collective = Collective::AllReduce;
  DataType type = DataType::F32;
  ReduceOp op = ReduceOp::Sum;
  Rank root = 0;
  const Algorithm* algorithm = nullptr;  // null: not chosen yet
  std::size_t count = 0;                 // elements

  // This rank's own part.
  std::byte* data = nullptr;
  bool is_copy = false;         // `data` is of InputCopies
  std::byte* output = nullptr;  // of a reduce_scatter in such a copy: where this rank's part goes
  ProgressHooks* hooks = nullptr;

  // Set once the algorithm is chosen; sign() sets the first two.
  std::uint64_t kind = 0;              // packed_kind(*this)
  std::uint64_t signature = 0;         // signature_of its call
  Choice* choice = nullptr;            // outlives the request
  bool first_use = false;              // this communicator has not used the schedule yet
  transport::MemoryLocation location;  // of the data, where peers can reach it
  bool eager = false;

  std::size_t bytes() const { return count * size_of(type); }
};

// The agreed fields except number and count, packed into 64 bits. A schedule from a file has its
// root, so such a call has 32 bits of the file's hash instead. Until all ranks have agreed on the
// file, at its first use, these are 0.
std::uint64_t packed_kind(const Request& request);
// A peer's call, as its status board or its message names it.
struct Call {
  std::uint64_t number = 0;
  std::uint64_t kind = 0;
  std::uint64_t count = 0;
};
// The agreed fields of a peer's request and its signature; the others are not set. nullopt: no rank
// of a group of that size can make such a call.
std::optional<Request> unpacked(const Call& call, int ranks);

// A hash of the agreed fields. Every message carries it, so that its receiver notices a mismatch.
std::uint64_t signature_of(const Call& call);
void sign(Request& request);

// The header of a message with that many bytes to a rank of another node. REQUIRES: a signed
// request.
transport::MessageHeader header_of(const Request& request, std::uint64_t bytes);

// "all_reduce of 1000 f32 (sum) by ring".
std::string describe(const Request& request);

class RunningCollective {
 public:
  virtual ~RunningCollective() = default;

  virtual void begin(const Request& request) = 0;

  // Moves the data that can be moved, and never blocks. Returns true when this rank's part is done
  // and no peer needs its memory any more. An error is final: a peer's request differs, a peer gave
  // up, or its memory cannot be reached.
  virtual Result<bool> advance() = 0;

  // A number that changes whenever data has moved.
  virtual std::uint64_t moved() const = 0;

  // The present step, counted from 1, and the number of steps, for error messages.
  virtual int step() const = 0;
  virtual int steps() const = 0;
  // A peer that it must wait for now; kOwn: none.
  virtual Rank waits_for() const = 0;
  // After Code::Mismatch: the peer whose message belongs to another collective.
  virtual Rank mismatched_peer() const = 0;
  // Whether it cannot complete without a further action of the peer.
  virtual bool needs(Rank peer) const = 0;
};

// `exchange` for small buffers: every rank puts its contribution into its slot, header and payload
// together, and adds up all slots in rank order. The slots are the schedule's scratch buffers, so
// nothing is copied twice. No rank waits at the end (transport/control.h says why).
class EagerExchange final : public RunningCollective {
 public:
  explicit EagerExchange(Endpoint& endpoint) : endpoint_{endpoint} {}

  void begin(const Request& request) override;
  Result<bool> advance() override;
  std::uint64_t moved() const override {
    return exchanges_ * static_cast<std::uint64_t>(endpoint_.size() + 1) +
           static_cast<std::uint64_t>(arrived_);
  }
  int step() const override { return 1; }
  int steps() const override { return 1; }
  Rank waits_for() const override { return arrived_ < endpoint_.size() ? arrived_ : kOwn; }
  Rank mismatched_peer() const override { return arrived_; }
  bool needs(Rank peer) const override;

 private:
  const transport::Slot& slot_of(Rank rank) const {
    return endpoint_.group().slot(rank, exchanges_);
  }

  Endpoint& endpoint_;
  std::uint64_t exchanges_ = 0;  // begun so far
  std::uint64_t signature_ = 0;
  kernels::Reduction reduction_;
  std::byte* data_ = nullptr;
  std::size_t count_ = 0;
  Rank arrived_ = 0;  // the slots of all lower ranks have arrived
  std::vector<const void*> sources_;
};

}  // namespace sluice::engine
