#include "engine/rank_context.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace sluice::engine {
namespace {

constexpr auto kForever = transport::Clock::time_point::max();

// Signals are for the threads of the program.
std::thread without_signals(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread{std::move(body)};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

RankContext::RankContext(int ranks_on_node) : waiter{std::make_shared<transport::Waiter>()} {
  // Those of the machine: a rank may itself be pinned to one of them.
  if (ranks_on_node > sysconf(_SC_NPROCESSORS_ONLN))
    wait_policy = transport::WaitPolicy::with_shared_cores();
}

ProgressThread::ProgressThread(Work work)
    : work_{std::move(work)}, thread_{without_signals([this] { run(); })} {}

ProgressThread::~ProgressThread() {
  stop_.store(true, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

void ProgressThread::wake() {
  wanted_.store(true, std::memory_order_seq_cst);
  transport::ring(idle_);
  work_.ring();
}

void ProgressThread::run() {
  transport::Waiter on_futex;
  const auto stopped = [&] { return stop_.load(std::memory_order_seq_cst); };
  while (!stopped()) {
    transport::wait_until(
        idle_, on_futex, kForever, {.spins = 0, .yields = 0},
        [&] { return wanted_.load(std::memory_order_seq_cst); }, [] {});
    wanted_.store(false, std::memory_order_seq_cst);
    transport::wait_until(
        work_.bell, work_.waiter, kForever, work_.wait_policy,
        [&] { return stopped() || work_.drive(); }, work_.look_after_peers);
  }
}

}  // namespace sluice::engine
