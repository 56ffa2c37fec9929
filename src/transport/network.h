// network.h - the way to the ranks of a group that are on other nodes.
//
// A Network belongs to one communicator at one rank. The two implementations are `tcp` and `mpi`.
// Each remote peer sends messages in order; a message is a header and its bytes. Status updates are
// separate: messages never delay them, and only the newest one counts. No function blocks unless
// its comment says so. A dead peer sends and receives nothing, and death_of() returns the reason.
// Messages that a peer sent before it said goodbye still arrive.
//
// A peer may be damaged or forged, so every field that it sends is checked before it is an index, a
// size or an enum: a StatusUpdate by Group, a MessageHeader by the engine. The check calls drop().
//
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/analysis/cost.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/wait.h"

namespace sluice::transport {

// The collective that a message belongs to, as its sender called it, and the message's length.
struct MessageHeader {
  std::uint64_t signature = 0;
  std::uint64_t number = 0;  // StatusBoard::entered of the sender
  std::uint64_t kind = 0;    // likewise StatusBoard::kind, and below StatusBoard::count
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// The contents of a StatusBoard (control.h), as they are sent to other nodes.
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

// How long split() waits for the other ranks.
struct SplitWait {
  Clock::time_point deadline;
  // Called about ten times a second with the new number of a rank that is missing. Its error ends
  // the wait: a rank will not come.
  std::function<Status(Rank missing)> check = [](Rank) { return Status{}; };
};

class Network {
 public:
  virtual ~Network() = default;

  // "tcp" or "mpi".
  virtual std::string_view name() const = 0;
  // How often a rank of this network checks before it sleeps.
  virtual WaitPolicy wait_policy() const { return WaitPolicy::with_network(); }
  // How a rank of this network sleeps. A network and all networks split from it share the waiter.
  virtual std::shared_ptr<Waiter> waiter() = 0;

  // Sets the cost of the links between nodes.
  virtual void set_link(const Link& /*between*/) {}
  // Bounds the receive buffers from now on. A rank calls it before it receives long messages from
  // several peers: a fast peer must not starve the one that it waits for. A repeated call is free.
  virtual void limit_receive_buffers() {}

  // Sends a message to a peer. The bytes must stay unchanged until sent(peer) counts the message.
  virtual void send(Rank peer, const MessageHeader& header, const std::byte* data) = 0;
  // Continues pending sends. Returns the number of messages that will arrive without another call.
  virtual std::uint64_t sent(Rank peer) = 0;
  // A counter that grows whenever the network sends more, however slowly.
  virtual std::uint64_t send_progress() const = 0;

  // The header of the oldest message from a peer that has not been read to its end; null until it
  // arrives. consume(peer, 0) consumes a message without bytes.
  virtual const MessageHeader* incoming(Rank peer) = 0;
  // The next bytes of that message that have arrived; valid until the next call for that peer.
  // REQUIRES: incoming(peer).
  virtual std::span<const std::byte> arrived(Rank peer) = 0;
  virtual void consume(Rank peer, std::size_t bytes) = 0;
  // Copies up to that many arrived bytes and consumes them; returns their number.
  virtual std::size_t read(Rank peer, std::byte* to, std::size_t bytes) {
    const std::span<const std::byte> here = arrived(peer);
    const std::size_t taken = std::min(bytes, here.size());
    if (taken > 0) std::memcpy(to, here.data(), taken);
    consume(peer, taken);
    return taken;
  }

  virtual void send_status(Rank peer, const StatusUpdate& update) = 0;
  // True: an update has arrived since the last call; `update` is the newest.
  virtual bool receive_status(Rank peer, StatusUpdate& update) = 0;

  // "" while the peer can be reached, else the reason.
  virtual std::string death_of(Rank peer) = 0;

  // Ends the connection to a peer that sent an impossible value; death_of() returns `why`.
  virtual void drop(Rank peer, const std::string& why) = 0;

  // Makes a network of some of these ranks, in the order of their new numbers. Each of them must
  // call it with the same id, and no other network of theirs may have that id. Blocks until all
  // have called it. The error names a rank that has not.
  virtual Result<std::unique_ptr<Network>> split(const std::vector<Rank>& ranks, std::uint64_t id,
                                                 const SplitWait& wait) = 0;
};

}  // namespace sluice::transport
