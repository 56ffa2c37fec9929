// Each function here wraps the C library's function of the same name and counts the call.
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <ctime>

#include "tests/engine/counters.h"

namespace {

std::atomic<long> all_waits{0};
std::atomic<long> waits_with_lock{0};
thread_local int held_mutexes = 0;  // by this thread

void note_wait() {
  all_waits.fetch_add(1, std::memory_order_relaxed);
  if (held_mutexes > 0) waits_with_lock.fetch_add(1, std::memory_order_relaxed);
}

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace sluice::engine {
WaitCounts waits() {
  return {.all = all_waits.load(std::memory_order_relaxed),
          .with_lock = waits_with_lock.load(std::memory_order_relaxed)};
}
}  // namespace sluice::engine

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto kLock = real(&pthread_mutex_lock, "pthread_mutex_lock");
  const int status = kLock(mutex);
  if (status == 0) ++held_mutexes;
  return status;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static const auto kTryLock = real(&pthread_mutex_trylock, "pthread_mutex_trylock");
  const int status = kTryLock(mutex);
  if (status == 0) ++held_mutexes;
  return status;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static const auto kUnlock = real(&pthread_mutex_unlock, "pthread_mutex_unlock");
  --held_mutexes;
  return kUnlock(mutex);
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  static const auto kWait = real(&epoll_wait, "epoll_wait");
  if (timeout != 0) note_wait();
  return kWait(epoll, events, most, timeout);
}

int poll(pollfd* polled, nfds_t count, int timeout) {
  static const auto kWait = real(&poll, "poll");
  if (timeout != 0) note_wait();
  return kWait(polled, count, timeout);
}

int nanosleep(const timespec* time, timespec* left) {
  static const auto kSleep = real(&nanosleep, "nanosleep");
  note_wait();
  return kSleep(time, left);
}

int sched_yield() noexcept {
  static const auto kYield = real(&sched_yield, "sched_yield");
  note_wait();
  return kYield();
}

long syscall(long number, ...) noexcept {
  static const auto kCall = real(&syscall, "syscall");
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& each : arguments) each = va_arg(list, long);
  va_end(list);
  const long futex_call = arguments[1] & FUTEX_CMD_MASK;
  if (number == SYS_futex && (futex_call == FUTEX_WAIT || futex_call == FUTEX_WAIT_BITSET))
    note_wait();
  return kCall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
               arguments[5]);
}

}  // extern "C"
