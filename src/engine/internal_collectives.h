// internal_collectives.h - collectives that the layers above need and users do not.
//
// The rank's progress thread moves a collective in the background while the caller computes. The
// first such collective starts the thread, which ends with the rank's last communicator. The thread
// moves all collectives that the rank has issued, on any communicator. A caller in wait() does the
// same, so hooks run on either thread.
//
// Thread-safety: a communicator still belongs to one thread at a time. All its collectives, in the
// background or not, run in the order of issue.
#pragma once

#include <cstdint>

#include "sluice/communicator.h"
#include "sluice/version.h"

namespace sluice::engine {

// Called before and after a collective in the background. A hook must not block, throw or issue a
// collective.
class ProgressHooks {
 public:
  virtual ~ProgressHooks() = default;
  // Writes the input into the buffer. Hooks are loaded in the order of issue, possibly while
  // earlier collectives are still in flight.
  virtual void load() {}
  // Reads the result from the buffer. Called before wait() returns, and not after a failure.
  virtual void unload() {}
};

// Returns at once, and allocates nothing in the steady state. `hooks` may be null; otherwise they
// must live until the work is done or has failed.
SLUICE_API Work all_reduce_in_background(Communicator& communicator, Elements data,
                                         const CollectiveOptions& options, ProgressHooks* hooks);

// Whether all ranks pass the same value; every rank gets the same answer. Every rank must call it.
// Blocks and throws like Work::wait().
SLUICE_API bool same_everywhere(Communicator& communicator, std::uint64_t value);

}  // namespace sluice::engine
