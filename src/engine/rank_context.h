// progress_thread.h - the thread that moves a rank's collectives while its caller computes.
//
// Asleep until it is woken; then it drives until nothing is left to be done, asleep on the rank's
// own bell or sockets in between, as a caller that waits would be.
//
// rank_context.h - what the communicators of one rank share: how it waits, and who drives it.
//
// Until a rank has a progress thread its communicators are driven by whoever waits, without a lock.
// From then on whoever drives holds `driving`: the thread, or a caller that waits and helps. It is
// held while collectives are moved, never while anybody sleeps.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/network.h"
#include "transport/wait.h"

namespace sluice::engine {

class ProgressThread {
 public:
  struct Work {
    transport::Doorbell& bell;  // rung when a peer has done something
    transport::Waiter& waiter;
    transport::WaitPolicy wait_policy;
    std::function<bool()> drive;  // moves all that can be moved; true: nothing is left
    std::function<void()> look_after_peers;
    std::function<void()> ring;  // the bell, in whatever way the thread sleeps
  };

  explicit ProgressThread(Work work);
  ~ProgressThread();  // leaves what is under way as it is
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // There is something to do. From any thread.
  void wake();

 private:
  void run();

  Work work_;
  transport::Doorbell idle_;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class CommunicatorState;

struct RankContext {
  // All ranks are on one node.
  explicit RankContext(int ranks_on_node);
  // They are on several.
  explicit RankContext(transport::Network& network)
      : wait_policy{network.wait_policy()}, waiter{network.waiter()} {}

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
  transport::WaitPolicy wait_policy;
  std::shared_ptr<transport::Waiter> waiter;
  std::mutex driving;
  transport::Doorbell completion;  // a caller sleeps on it while the thread drives
  std::unique_ptr<ProgressThread> progress;
};

}  // namespace sluice::engine
