// background.h - a collective that the rank's progress thread carries out while the caller goes on.
//
// The thread is started by the first errand of a rank and ends with its last communicator. It
// drives all that the rank has issued, on any of its communicators; a caller that waits meanwhile
// helps, so that "the progress thread" below may be the caller in its wait().
//
// Thread-safety: a communicator still belongs to one thread at a time; errands of one communicator
// and its other collectives run in the order in which they were issued.
//
// same_everywhere.h - whether all ranks have one value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/communicator.h"

namespace sluice::engine {

// What is done on the progress thread before and after the collective. Neither may block, throw or
// issue a collective.
class ProgressHooks {
 public:
  virtual ~ProgressHooks() = default;
  // Brings the input into the buffer. Called when the thread takes the errand up, which may be
  // while earlier collectives are still under way, in the order of issue.
  virtual void load() {}
  // The result is in the buffer. Called before wait() returns, not after a failure.
  virtual void unload() {}
};

// An all_reduce as an errand. Returns at once; in the steady state nothing is allocated. `errand`
// may be null, and must else live until the work is done or has failed.
Work all_reduce_in_background(Communicator& communicator, void* data, std::size_t count,
                              const CollectiveOptions& options, ProgressHooks* errand);

// The same answer at every rank, each of which must call it. Throws Error, as Work::wait() does.
bool same_everywhere(Communicator& communicator, std::uint64_t value);

}  // namespace sluice::engine
