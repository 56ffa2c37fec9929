#include "transport/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/format.h"

namespace sluice::transport {
namespace {

enum Source : std::uint32_t { Messages, StatusUpdates, WakeDescriptor };

constexpr auto kBetweenChecks = std::chrono::milliseconds{100};

}  // namespace

bool ring(Doorbell& doorbell) {
  const std::uint32_t sleeping = doorbell.sleeping.load(std::memory_order_seq_cst);
  if (sleeping != Waiter::kOnFutex) return sleeping == Waiter::kOnDescriptor;
  doorbell.rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &doorbell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return false;
}

bool Waiter::sleep(Doorbell& doorbell, std::uint32_t rings, Clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
  if (left <= 0) return true;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec time{left / kSecond, left % kSecond};
  syscall(SYS_futex, &doorbell.rings, FUTEX_WAIT, rings, &time, nullptr, 0);
  return true;
}

Result<std::shared_ptr<EpollWaiter>> EpollWaiter::make(int wake_descriptor, bool spins) {
  base::Fd epoll{epoll_create1(EPOLL_CLOEXEC)};
  epoll_event event{.events = EPOLLIN, .data = {.u32 = WakeDescriptor}};
  if (!epoll.open() || epoll_ctl(epoll.number(), EPOLL_CTL_ADD, wake_descriptor, &event) != 0) {
    return Status{Code::NoMemory,
                  base::format("cannot create an epoll descriptor: {}", std::strerror(errno))};
  }
  return std::shared_ptr<EpollWaiter>{
      new EpollWaiter{std::move(epoll), wake_descriptor, spins}};  // NOLINT: private
}

void EpollWaiter::add(int socket, bool carries_status) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET,
                    .data = {.u32 = carries_status ? StatusUpdates : Messages}};
  if (!carries_status) event.events |= EPOLLOUT;
  epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket, &event);
}

void EpollWaiter::begin() {
  note_wait();  // the last one
  woken_ = false;
  waits_since_.reset();
}

void EpollWaiter::note_wait() {
  if (!moved_.exchange(false, std::memory_order_relaxed) || !waits_since_) return;
  rule_.waited(look_began_ - *waits_since_);
  waits_since_.reset();
}

Waiter::Next EpollWaiter::next() {
  if (!spins_) return Next::Sleep;
  if (std::exchange(woken_, false)) return Next::Look;
  const auto now = Clock::now();
  note_wait();
  if (!waits_since_) waits_since_ = now;
  if (!rule_.looks_again(now - *waits_since_)) return Next::Sleep;
  yield();
  look_began_ = Clock::now();
  if (look_began_ - now >= SpinRule::kLostCore) rule_.lost_core();
  return check_is_due(look_began_) ? Next::LookAndCheck : Next::Look;
}

bool EpollWaiter::check_is_due(Clock::time_point now) {
  if (now - last_check_ < kBetweenChecks) return false;
  last_check_ = now;
  return true;
}

bool EpollWaiter::sleep(Doorbell& /*doorbell*/, std::uint32_t /*rings*/, Clock::time_point until) {
  std::array<epoll_event, 16> events{};
  const int count = epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()),
                               poll_timeout(until, kBetweenChecks));
  bool check = false;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t source = events[static_cast<std::size_t>(i)].data.u32;
    check = check || source != Messages;
    // One read empties an eventfd; a socket has a datagram for each peer that rang.
    std::uint64_t rings = 0;
    while (source == WakeDescriptor && read(wake_descriptor_, &rings, sizeof rings) > 0) continue;
  }
  look_began_ = Clock::now();
  woken_ = true;
  return check_is_due(look_began_) || check;
}

int poll_timeout(Clock::time_point until, std::chrono::milliseconds most) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, most.count()));
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void yield() { sched_yield(); }

}  // namespace sluice::transport
