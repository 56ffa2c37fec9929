// two_threads.h - runs work on two pinned threads at once and times it.
//
// The wall time of a slice goes from the moment both threads are ready to the moment both are done.
// On a shared machine most slices are disturbed, so the best slice counts. Long slices are always
// disturbed, so they use the processor time of the busier thread.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <thread>

namespace sluice::bench {

class TwoThreads {
 public:
  TwoThreads() {
    pin(0);
    other_ = std::thread{[this] { serve(); }};
  }

  ~TwoThreads() {
    work_ = nullptr;
    meet();
    other_.join();
  }

  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;

  enum class Clock { Wall, Processor };

  // Runs work(0) and work(1), each on its core. Returns seconds.
  double run(const std::function<void(int)>& work, Clock clock = Clock::Wall) {
    work_ = &work;
    clock_ = clock;
    meet();
    const auto start = std::chrono::steady_clock::now();
    const double own_s = do_work(0);
    meet();
    if (clock == Clock::Processor) return std::max(own_s, other_s_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  static void pin(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
  }

  static double processor_s() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  double do_work(int which) const {
    if (clock_ == Clock::Wall) {  // reading the processor time takes longer than 4 KiB of work
      (*work_)(which);
      return 0;
    }
    const double start_s = processor_s();
    (*work_)(which);
    return processor_s() - start_s;
  }

  void meet() {
    const int round = arrived_.fetch_add(1) / 2;
    while (arrived_.load() < 2 * (round + 1)) {
    }
  }

  void serve() {
    pin(1);
    for (;;) {
      meet();
      if (work_ == nullptr) return;
      other_s_ = do_work(1);
      meet();
    }
  }

  std::atomic<int> arrived_{0};
  const std::function<void(int)>* work_ = nullptr;
  Clock clock_ = Clock::Wall;
  double other_s_ = 0;
  std::thread other_;
};

}  // namespace sluice::bench
