// wait.h - how a rank waits for its peers: it spins briefly, yields some times, then sleeps. Over a
// network it may also look again before it sleeps once more (spin_rule.h).
//
// A rank waits for changes by other threads. A thread that makes such a change rings the rank's
// doorbell. Ringing costs one load while the rank is awake. A futex wakes a sleeping rank; it works
// across processes because the doorbell is in shared memory. The rank announces its sleep before it
// checks for changes, and a peer makes its change before it checks whether the rank sleeps, so one
// of them sees the other. This needs sequentially consistent stores and loads on both sides.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/file.h"
#include "sluice/status.h"
#include "transport/spin_rule.h"

namespace sluice::transport {

using Clock = std::chrono::steady_clock;

struct Doorbell {
  std::atomic<std::uint32_t> rings{0};
  std::atomic<std::uint32_t> sleeping{0};  // 0: awake; else Waiter::kind()
};

// How a rank sleeps after it has spun and yielded. This base class sleeps on the doorbell's futex.
class Waiter {
 public:
  static constexpr std::uint32_t kOnFutex = 1;
  static constexpr std::uint32_t kOnDescriptor = 2;
  enum class Next : std::uint8_t { Sleep, Look, LookAndCheck };

  virtual ~Waiter() = default;
  // A wait begins.
  virtual void begin() {}
  // What a rank does that has looked for changes and is not done. It may yield the core first.
  // LookAndCheck: it is also time to check the peers.
  virtual Next next() { return Next::Sleep; }
  // The value of Doorbell::sleeping while the rank sleeps: kOnFutex or kOnDescriptor.
  virtual std::uint32_t kind() const { return kOnFutex; }
  // Sleeps until the doorbell has rung since `rings` was read, until another event that the rank
  // may wait for, or until the given time. True: it is time to check the peers.
  virtual bool sleep(Doorbell& doorbell, std::uint32_t rings, Clock::time_point until);
};

// Sleeps on the sockets to all peers on other nodes, and on a descriptor with which peers on this
// node wake the rank. Sockets are edge-triggered: before the rank sleeps, it has read from every
// socket whose data it can use, and unread data in other sockets does not wake it again.
// Thread-safety: one thread at a time.
class EpollWaiter final : public Waiter {
 public:
  // `wake_descriptor` becomes readable when a peer on this node rings. It does not block, and must
  // outlive the waiter.
  // `spins`: a rank looks at the sockets again and again before it sleeps, where that pays.
  static Result<std::shared_ptr<EpollWaiter>> make(int wake_descriptor, bool spins);

  std::uint32_t kind() const override { return kOnDescriptor; }
  void begin() override;
  Next next() override;
  // Bytes were sent or received. May be called from any thread.
  void note_progress() { moved_.store(true, std::memory_order_relaxed); }
  bool sleep(Doorbell& doorbell, std::uint32_t rings, Clock::time_point until) override;

  // Lets the socket wake the rank until the socket is closed. sleep() returns true when a socket
  // with status updates has woken the rank.
  void add(int socket, bool carries_status);

 private:
  EpollWaiter(base::Fd epoll, int wake_descriptor, bool spins)
      : epoll_{std::move(epoll)}, wake_descriptor_{wake_descriptor}, spins_{spins} {}
  void note_wait();
  bool check_is_due(Clock::time_point now);

  base::Fd epoll_;
  int wake_descriptor_;
  Clock::time_point last_check_ = Clock::now();
  bool spins_;
  SpinRule rule_;
  std::atomic<bool> moved_{false};                // in the last look
  bool woken_ = false;                            // and has not looked since
  Clock::time_point look_began_;                  // the last one
  std::optional<Clock::time_point> waits_since_;  // when the rank had moved all that it could
};

// Wakes a rank that sleeps on its futex. True: it sleeps on a descriptor, and the caller must write
// to that.
bool ring(Doorbell& doorbell);

// How often a rank checks before it sleeps. Where ranks share cores, a rank that spins delays the
// work of the others.
struct WaitPolicy {
  int spins = 4000;  // about 100 us; waking a sleeping thread costs tens of microseconds
  int yields = 20;

  static WaitPolicy with_shared_cores() { return {.spins = 1, .yields = 20}; }
  // The waiter of a network decides how often a rank looks before it sleeps.
  static WaitPolicy with_network() { return {.spins = 1, .yields = 0}; }
};

// The timeout that makes poll() return at `until`: milliseconds, rounded up, from 0 to `most`.
int poll_timeout(Clock::time_point until, std::chrono::milliseconds most);

void pause_briefly();
void yield();

// Waits until done() returns true or the deadline passes; returns the last result of done(). done()
// is called repeatedly and must itself make progress. While the rank sleeps, idle() is called about
// ten times a second, to notice events that ring no doorbell, like the death of a peer.
template <class Done, class Idle>
bool wait_until(Doorbell& doorbell, Waiter& waiter, Clock::time_point deadline,
                const WaitPolicy& policy, Done&& done, Idle&& idle) {
  constexpr auto kLongestSleep = std::chrono::milliseconds{100};
  for (int i = 0; i < policy.spins; ++i) {
    if (done()) return true;
    pause_briefly();
  }
  for (int i = 0; i < policy.yields; ++i) {
    if (done()) return true;
    yield();
  }
  waiter.begin();
  while (true) {
    for (auto next = waiter.next(); next != Waiter::Next::Sleep; next = waiter.next()) {
      if (done()) return true;
      if (next == Waiter::Next::LookAndCheck) idle();
    }
    const std::uint32_t rings = doorbell.rings.load(std::memory_order_acquire);
    doorbell.sleeping.store(waiter.kind(), std::memory_order_seq_cst);
    const bool is_done = done();
    const auto now = Clock::now();
    const bool sleeps = !is_done && now < deadline;
    const bool check =
        sleeps && waiter.sleep(doorbell, rings, std::min(deadline, now + kLongestSleep));
    doorbell.sleeping.store(0, std::memory_order_relaxed);
    if (!sleeps) return is_done;
    if (check) idle();
  }
}

}  // namespace sluice::transport
