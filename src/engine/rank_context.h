// rank_context.h - the state that the communicators of one rank share: how the rank waits, and its
// progress thread.
//
// Until a rank has a progress thread, the caller that waits moves its collectives, without a lock.
// After that, the progress thread moves them, and so does a caller that waits; both must hold
// `mutex`. It is held while collectives are moved, and never while a thread sleeps.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bootstrap/launch/failure_report.h"
#include "transport/group.h"
#include "transport/wait.h"

namespace sluice::engine {

class CommunicatorState;
struct RankContext;

// Moves the collectives of a rank while its caller computes. The thread sleeps until wake(). Then
// it moves collectives until nothing is left to do. When nothing can be moved at present, it sleeps
// as a waiting caller would.
class ProgressThread {
 public:
  // `context` must outlive it, and so must the memory of `group`.
  ProgressThread(RankContext& context, const transport::Group& group);
  ~ProgressThread();  // collectives in flight stay as they are
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Tells the thread that there is something to do. May be called from any thread.
  void wake();

 private:
  void run();

  RankContext& context_;
  transport::Memory& memory_;
  transport::Doorbell& bell_;  // a peer rings it after every change
  Rank local_;                 // this rank's number in its memory
  transport::Doorbell idle_;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct RankContext {
  // The context for a group whose ranks are all on this node.
  explicit RankContext(int ranks_on_node);
  // The context for a group on several nodes.
  explicit RankContext(transport::Network& network)
      : wait_policy{network.wait_policy()}, waiter{network.waiter()} {}

  // Locks the mutex, or returns an empty lock when there is no progress thread.
  std::unique_lock<std::mutex> lock() {
    return progress_thread ? std::unique_lock{mutex} : std::unique_lock<std::mutex>{};
  }
  // False: another thread holds the mutex.
  bool try_lock(std::unique_lock<std::mutex>& lock) {
    if (!progress_thread) return true;
    lock = std::unique_lock{mutex, std::try_to_lock};
    return lock.owns_lock();
  }

  // Wakes a waiting caller: a collective is complete or has failed.
  void notify() {
    if (progress_thread) transport::ring(completion);
  }

  // Moves everything that can be moved, on all communicators. True: nothing is left to do.
  bool progress();
  void check_peers();
  // Waits for everything submitted to the progress thread.
  Status drain();

  std::vector<CommunicatorState*> communicators;
  transport::WaitPolicy wait_policy;
  std::shared_ptr<transport::Waiter> waiter;
  std::mutex mutex;
  transport::Doorbell completion;  // a caller sleeps on it while the thread moves collectives
  std::unique_ptr<ProgressThread> progress_thread;
  bootstrap::FailureReporter launcher;  // receives the failures of communicators
};

}  // namespace sluice::engine
