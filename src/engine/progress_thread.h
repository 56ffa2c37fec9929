// progress_thread.h - the thread that moves a rank's collectives while its caller computes.
//
// Asleep until it is woken; then it drives until nothing is left to be done, asleep on the rank's
// own bell or sockets in between, as a caller that waits would be.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "transport/wait.h"

namespace sluice::engine {

class ProgressThread {
 public:
  struct Work {
    transport::Doorbell& bell;  // rung when a peer has done something
    transport::Sleeper& sleeper;
    transport::WaitPolicy patience;
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

}  // namespace sluice::engine
