// rank_context.h - what the communicators of one rank share: how it waits, and who drives it.
//
// Until a rank has a progress thread its communicators are driven by whoever waits, without a lock.
// From then on whoever drives holds `driving`: the thread, or a caller that waits and helps. It is
// held while collectives are moved, never while anybody sleeps.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "engine/progress_thread.h"
#include "transport/network.h"
#include "transport/wait.h"

namespace sluice::engine {

class CommunicatorState;

struct RankContext {
  // All ranks are on one node.
  explicit RankContext(int ranks_on_node);
  // They are on several.
  explicit RankContext(transport::Network& network)
      : patience{network.patience()}, sleeper{network.sleeper()} {}

  // Locked where there is a progress thread.
  std::unique_lock<std::mutex> drive() {
    return progress ? std::unique_lock{driving} : std::unique_lock<std::mutex>{};
  }
  // The same, unless another thread is driving: then false.
  bool try_drive(std::unique_lock<std::mutex>& lock) {
    if (!progress) return true;
    lock = std::unique_lock{driving, std::try_to_lock};
    return lock.owns_lock();
  }

  // Something has been completed or has failed.
  void announce() {
    if (progress) transport::ring(completion);
  }

  std::vector<CommunicatorState*> communicators;
  transport::WaitPolicy patience;
  std::shared_ptr<transport::Sleeper> sleeper;
  std::mutex driving;
  transport::Doorbell completion;  // a caller sleeps on it while the thread drives
  std::unique_ptr<ProgressThread> progress;
};

}  // namespace sluice::engine
