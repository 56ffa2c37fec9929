// running_collective.h - a collective under way at one rank, as its communicator sees it.
#pragma once

#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::engine {

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
