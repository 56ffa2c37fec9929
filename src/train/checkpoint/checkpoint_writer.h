// checkpoint_writer.h - writes checkpoints while training goes on.
//
// One checkpoint is written at a time. save() waits until this rank's last checkpoint is on the
// disk, then copies the state into memory that it reuses. So when a rank saves, every other rank
// has written the checkpoint before the last, and rank 0 never removes the last valid one.
//
// Thread-safety: one thread at a time. An internal thread writes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <thread>

#include "sluice/status.h"
#include "sluice/types.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/training_snapshot.h"

namespace sluice::train {

class CheckpointWriter {
 public:
  struct Options {
    std::filesystem::path folder;  // created when it is needed
    Rank rank = 0;
    int ranks = 1;
    std::uint64_t run = 0;  // from load_latest() or draw_run()
    int keep = 3;           // complete checkpoints, besides the one with the highest accuracy
  };
  explicit CheckpointWriter(Options options);

  // Every rank must call it, after the same step and before the next backward. With double
  // buffering it waits for the mean in flight. Returns the error of the last checkpoint, or of
  // copying this one. An error need not end the training.
  Status save(const TrainingState& state, const TrainingObjects& objects);
  // Waits until everything is written. Returns an error that no call has returned yet.
  Status finish();

 private:
  void run(const std::stop_token& stop);
  Status write() const;

  const Options options_;
  // The thread uses them while `busy_`, otherwise the caller does.
  TrainingSnapshot snapshot_;
  CheckpointHeader header_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool busy_ = false;
  Status failed_;
  std::jthread
      thread_;  // last: it uses the members above; its destructor waits until all is written
};

}  // namespace sluice::train
