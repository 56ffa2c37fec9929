// wait.h - how a rank waits for its peers: spin briefly, yield some times, then sleep on its bell.
//
// Whoever changes something that a rank may be waiting for rings that rank's bell. Ringing costs a
// load while the rank is awake; a waiter is woken with a futex, which works across processes
// because the bell lies in shared memory. What is announced must be stored, and what is waited for
// loaded, in sequentially consistent order: the rank says that it sleeps before it looks for
// changes, and the other makes its change before it looks whether the rank sleeps, so one sees the
// other.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "base/file.h"
#include "sluice/status.h"

namespace sluice::transport {

using Clock = std::chrono::steady_clock;

struct Doorbell {
  std::atomic<std::uint32_t> rings{0};
  std::atomic<std::uint32_t> sleeping{0};  // 0: awake; else how it sleeps
};

// How a rank sleeps once it has spun and yielded.
class Waiter {
 public:
  static constexpr std::uint32_t kOnFutex = 1;
  static constexpr std::uint32_t kOnDescriptor = 2;

  virtual ~Waiter() = default;
  // What a bell says while its rank sleeps so: kOnFutex or kOnDescriptor.
  virtual std::uint32_t kind() const { return kOnFutex; }
  // Sleeps until the bell has rung since `rings` was read, until anything else that the rank waits
  // for may have happened, or until the time is over. True: it is time to look after the peers.
  virtual bool sleep(Doorbell& bell, std::uint32_t rings, Clock::time_point until);
};

// Sleeps on all sockets to peers of other nodes at once, and on a descriptor by which the peers of
// this node wake the rank. Sockets are edge-triggered: the rank has read every socket it can use
// before it sleeps, so data that waits in others does not wake it again.
// Thread-safety: one thread at a time.
class EpollWaiter final : public Waiter {
 public:
  // `waker` becomes readable when a peer of this node rings; it must outlive the waiter's use.
  static Result<std::shared_ptr<EpollWaiter>> make(int waker);

  std::uint32_t kind() const override { return kOnDescriptor; }
  bool sleep(Doorbell& bell, std::uint32_t rings, Clock::time_point until) override;

  // A socket wakes from now on, until it is closed. What comes on one of notes is for who looks
  // after the peers.
  void watch(int socket, bool of_notes);

 private:
  EpollWaiter(base::Fd epoll, int waker) : epoll_{std::move(epoll)}, waker_{waker} {}

  base::Fd epoll_;
  int waker_;
  Clock::time_point last_look_ = Clock::now();
};

// Wakes a rank that sleeps on its futex. True: it sleeps otherwise, and must be woken so.
bool ring(Doorbell& bell);

// How long a rank stays on its core before it sleeps. Where ranks share cores, whoever spins keeps
// the others from doing what it waits for.
struct WaitPolicy {
  int spins = 4000;  // some 100 us: waking a waiter costs tens
  int yields = 20;

  static WaitPolicy with_shared_cores() { return {.spins = 1, .yields = 20}; }
  // Every look costs system calls, and on the way to another host tens of microseconds pass.
  static WaitPolicy with_network() { return {.spins = 1, .yields = 100}; }
};

void pause_briefly();
void yield();

// Waits for `true` from done(), or until the deadline; returns whether done() was true last. done()
// is called again and again, and must itself look for progress. While asleep, `idle` is called
// about ten times a second, to look after what rings no bell (a dead peer).
template <class Done, class Idle>
bool wait_until(Doorbell& bell, Waiter& waiter, Clock::time_point deadline,
                const WaitPolicy& policy, Done&& done, Idle&& idle) {
  constexpr auto kNap = std::chrono::milliseconds{100};
  for (int i = 0; i < policy.spins; ++i) {
    if (done()) return true;
    pause_briefly();
  }
  for (int i = 0; i < policy.yields; ++i) {
    if (done()) return true;
    yield();
  }
  while (true) {
    const std::uint32_t rings = bell.rings.load(std::memory_order_acquire);
    bell.sleeping.store(waiter.kind(), std::memory_order_seq_cst);
    if (done()) break;
    const auto now = Clock::now();
    if (now >= deadline) {
      bell.sleeping.store(0, std::memory_order_relaxed);
      return false;
    }
    const bool look = waiter.sleep(bell, rings, std::min(deadline, now + kNap));
    bell.sleeping.store(0, std::memory_order_relaxed);
    if (look) idle();
  }
  bell.sleeping.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace sluice::transport
