#include "transport/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace sluice::transport {

bool ring(Doorbell& bell) {
  const std::uint32_t sleeping = bell.sleeping.load(std::memory_order_seq_cst);
  if (sleeping != Sleeper::kOnFutex) return sleeping == Sleeper::kOnDescriptor;
  bell.rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &bell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return false;
}

bool Sleeper::sleep(Doorbell& bell, std::uint32_t rings, Clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
  if (left <= 0) return true;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec time{left / kSecond, left % kSecond};
  syscall(SYS_futex, &bell.rings, FUTEX_WAIT, rings, &time, nullptr, 0);
  return true;
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
