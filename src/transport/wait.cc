#include "transport/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
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

enum Source : std::uint32_t { Messages, Notes, Waker };

}  // namespace

bool ring(Doorbell& bell) {
  const std::uint32_t sleeping = bell.sleeping.load(std::memory_order_seq_cst);
  if (sleeping != Waiter::kOnFutex) return sleeping == Waiter::kOnDescriptor;
  bell.rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &bell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return false;
}

bool Waiter::sleep(Doorbell& bell, std::uint32_t rings, Clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
  if (left <= 0) return true;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec time{left / kSecond, left % kSecond};
  syscall(SYS_futex, &bell.rings, FUTEX_WAIT, rings, &time, nullptr, 0);
  return true;
}

Result<std::shared_ptr<EpollWaiter>> EpollWaiter::make(int waker) {
  base::Fd epoll{epoll_create1(EPOLL_CLOEXEC)};
  epoll_event event{.events = EPOLLIN, .data = {.u32 = Waker}};
  if (!epoll.open() || epoll_ctl(epoll.number(), EPOLL_CTL_ADD, waker, &event) != 0) {
    return Status{Code::NoMemory,
                  base::format("no descriptor to sleep on: {}", std::strerror(errno))};
  }
  return std::shared_ptr<EpollWaiter>{new EpollWaiter{std::move(epoll), waker}};  // NOLINT: private
}

void EpollWaiter::watch(int socket, bool of_notes) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET,
                    .data = {.u32 = of_notes ? Notes : Messages}};
  if (!of_notes) event.events |= EPOLLOUT;
  epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket, &event);
}

bool EpollWaiter::sleep(Doorbell& /*bell*/, std::uint32_t /*rings*/, Clock::time_point until) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds{100};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  std::array<epoll_event, 16> events{};
  const int count =
      epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()),
                 static_cast<int>(std::clamp<std::int64_t>(left, 0, kBetweenLooks.count())));
  bool look = false;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t source = events[static_cast<std::size_t>(i)].data.u32;
    look = look || source != Messages;
    eventfd_t rung = 0;
    if (source == Waker) eventfd_read(waker_, &rung);
  }
  const auto now = Clock::now();
  look = look || now - last_look_ >= kBetweenLooks;
  if (look) last_look_ = now;
  return look;
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
