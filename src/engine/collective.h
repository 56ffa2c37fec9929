// collective.h - one collective at one rank: what was asked for, and how far it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sluice/schedule.h"
#include "sluice/status.h"
#include "sluice/types.h"
#include "transport/network.h"

namespace sluice::engine {

struct Request {
  std::uint64_t number = 0;  // of the collective in its communicator, from 1
  Collective collective = Collective::AllReduce;
  DataType type = DataType::F32;
  ReduceOp op = ReduceOp::Sum;
  Rank root = 0;
  std::uint8_t algorithm = 0;  // its place in built_in_algorithms(), as chosen
  std::size_t count = 0;       // elements
};

// Everything but number and count in one word, for the board.
std::uint64_t packed_kind(const Request& request);
Request unpacked(std::uint64_t number, std::uint64_t kind, std::uint64_t count);

// Equal requests, equal signatures; every message carries it.
std::uint64_t signature_of(const Request& request);

// What goes before that many bytes of it on their way to another node.
transport::MessageHeader header_of(const Request& request, std::uint64_t signature,
                                   std::uint64_t bytes);

// "all_reduce of 1000 f32 (sum) by ring".
std::string describe(const Request& request);

class RunningCollective {
 public:
  virtual ~RunningCollective() = default;

  // Moves what can be moved and never blocks. True once this rank's part is done and no peer needs
  // its memory any more. An error is final: the request of a peer differs, or its memory cannot be
  // reached.
  virtual Result<bool> advance() = 0;

  // Changes whenever anything of it has moved.
  virtual std::uint64_t moved() const = 0;

  // Where it stands, for messages: steps are counted from 1.
  virtual int step() const = 0;
  virtual int steps() const = 0;
  // A peer without which it cannot go on now; kOwn: nobody.
  virtual Rank waits_for() const = 0;
  // After an error with Code::Mismatch: whose message was of another collective.
  virtual Rank differs() const = 0;
  // Whether it cannot be completed without something that the peer has yet to do.
  virtual bool needs(Rank peer) const = 0;
};

}  // namespace sluice::engine
