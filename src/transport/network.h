// network.h - the way to the ranks of a group that are on other nodes.
//
// A Network belongs to one communicator at one rank; `tcp` and `mpi` are two of them. Each remote
// peer sends it messages, in order, each a header and its bytes. Beside them, and never held up by
// them, go notes: what a rank tells of itself, of which only the newest counts. Nothing here blocks
// unless it says so; a peer that is gone sends nothing and takes nothing, and death_of() says how
// it went. What a peer sent before it left in order still arrives.
//
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/analysis/cost.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/wait.h"

namespace sluice::transport {

// What a message belongs to, as its sender was asked for it, and how long it is.
struct MessageHeader {
  std::uint64_t signature = 0;
  std::uint64_t number = 0;  // these three as on a Board
  std::uint64_t kind = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// A rank's Board, as it travels.
struct StatusUpdate {
  std::uint64_t entered = 0;
  std::uint64_t kind = 0;
  std::uint64_t count = 0;
  std::uint64_t signature = 0;
  std::int32_t step = 0;
  std::int32_t waits_for = 0;
  std::int32_t blamed = 0;
  std::uint32_t failed = 0;
  std::uint64_t blamed_in = 0;
};

class Network {
 public:
  virtual ~Network() = default;

  // "tcp", "mpi".
  virtual std::string_view name() const = 0;
  // How long a rank of this network looks before it sleeps, and how it sleeps. The same for all
  // networks that were split from one.
  virtual WaitPolicy wait_policy() const { return WaitPolicy::with_network(); }
  virtual std::shared_ptr<Waiter> waiter() = 0;

  // What the links to other nodes give, once that is known.
  virtual void set_link(const Link& /*between*/) {}
  // From now on long messages come from one peer after another: who is ahead must not take the link
  // from whom this rank waits for. Costs nothing when said again.
  virtual void limit_receive_buffers() {}

  // Messages to a peer. The bytes must stay as they are until sent(peer) counts the message, which
  // also moves on what could not be sent at once; what it counts needs no further call to arrive.
  // One of no bytes is a message, too.
  virtual void send(Rank peer, const MessageHeader& header, const std::byte* data) = 0;
  virtual std::uint64_t sent(Rank peer) = 0;
  // Grows while they go, be it slowly.
  virtual std::uint64_t send_progress() const = 0;

  // Messages from a peer: the header of the oldest that has not been read to its end; null while it
  // is not here. One of no bytes is read to its end by consume(peer, 0).
  virtual const MessageHeader* incoming(Rank peer) = 0;
  // Its next bytes, as many as are here; valid until the next call for that peer. REQUIRES:
  // incoming(peer).
  virtual std::span<const std::byte> arrived(Rank peer) = 0;
  virtual void consume(Rank peer, std::size_t bytes) = 0;
  // The same in one: up to that many bytes, copied to where they belong; returns how many.
  virtual std::size_t read(Rank peer, std::byte* to, std::size_t bytes) {
    const std::span<const std::byte> here = arrived(peer);
    const std::size_t taken = std::min(bytes, here.size());
    if (taken > 0) std::memcpy(to, here.data(), taken);
    consume(peer, taken);
    return taken;
  }

  virtual void send_status(Rank peer, const StatusUpdate& note) = 0;
  // True: the peer told something since it was heard last; `note` is the newest.
  virtual bool receive_status(Rank peer, StatusUpdate& note) = 0;

  // "" while the peer can be reached, else why not.
  virtual std::string death_of(Rank peer) = 0;

  // A network of some of these ranks, in the order of their new numbers, each of which must call it
  // with the same id, which no other network of theirs has. Blocks until all have; fails with a
  // sentence that says who has not.
  virtual Result<std::unique_ptr<Network>> split(const std::vector<Rank>& ranks, std::uint64_t id,
                                                 Clock::time_point deadline) = 0;
};

}  // namespace sluice::transport
