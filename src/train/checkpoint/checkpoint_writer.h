// checkpoint_writer.h - checkpoints that are written while training goes on.
//
// One is written at a time: save() copies into memory that is reused, and waits only where the one
// before is not on the disk yet. So when a rank saves, every other rank has written the checkpoint
// before the last, and what rank 0 removes is never the last good one.
//
// Thread-safety: one thread at a time; a thread of its own writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "sluice/status.h"
#include "sluice/types.h"
#include "train/checkpoint/checkpoint.h"

namespace sluice::train {

class CheckpointWriter {
 public:
  struct Options {
    std::filesystem::path folder;  // made when it is needed
    Rank rank = 0;
    int ranks = 1;
    std::uint64_t run = 0;  // from load_latest() or draw_run()
    int keep = 3;           // whole ones, besides that of the highest accuracy
  };
  explicit CheckpointWriter(Options options);
  // Waits until all is written.
  ~CheckpointWriter();

  // Every rank must call it, after the same step and before its next backward. With double
  // buffering it waits for the mean in flight. Returns what went wrong with the one before, or
  // while copying; a failure to write is no reason to end a training.
  Status save(const TrainingState& state, const TrainingObjects& objects);
  // Waits until all is written. Returns what went wrong and has not been told yet.
  Status finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::train
