#include "engine/rank_context.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <utility>

#include "engine/communicator_state.h"

namespace sluice::engine {
namespace {

constexpr auto kForever = transport::Clock::time_point::max();

// Signals are delivered to the threads of the program, not to this one.
std::thread thread_without_signals(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread{std::move(body)};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

ProgressThread::ProgressThread(RankContext& context, const transport::Group& group)
    : context_{context},
      memory_{group.memory()},
      bell_{group.own_doorbell()},
      local_{group.location(group.rank()).local},
      thread_{thread_without_signals([this] { run(); })} {}

ProgressThread::~ProgressThread() {
  stop_.store(true, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

void ProgressThread::wake() {
  wanted_.store(true, std::memory_order_seq_cst);
  transport::ring(idle_);
  if (transport::ring(bell_)) memory_.wake(local_);
}

void ProgressThread::run() {
  transport::Waiter on_futex;
  const auto stopped = [&] { return stop_.load(std::memory_order_seq_cst); };
  const auto progress = [&] {
    const std::lock_guard lock{context_.mutex};
    return context_.progress();
  };
  const auto check_peers = [&] {
    const std::lock_guard lock{context_.mutex};
    context_.check_peers();
  };
  // A thread that spins would take the core from a thread that computes.
  const auto wait_policy = transport::WaitPolicy::with_shared_cores();
  while (!stopped()) {
    transport::wait_until(
        idle_, on_futex, kForever, {.spins = 0, .yields = 0},
        [&] { return wanted_.load(std::memory_order_seq_cst); }, [] {});
    wanted_.store(false, std::memory_order_seq_cst);
    transport::wait_until(
        bell_, *context_.waiter, kForever, wait_policy, [&] { return stopped() || progress(); },
        check_peers);
  }
}

RankContext::RankContext(int ranks_on_node) : waiter{std::make_shared<transport::Waiter>()} {
  // All cores of the machine count: this rank may be pinned to one of them.
  if (ranks_on_node > sysconf(_SC_NPROCESSORS_ONLN))
    wait_policy = transport::WaitPolicy::with_shared_cores();
}

bool RankContext::progress() {
  bool done = true;
  for (CommunicatorState* const each : communicators) done = each->progress() && done;
  return done;
}

void RankContext::check_peers() {
  for (CommunicatorState* const each : communicators) each->check_peers();
}

Status RankContext::drain() {
  if (!progress_thread) return {};
  for (CommunicatorState* const each : communicators) {
    if (Status status = each->wait_for_all(); !status.ok()) return status;
  }
  return {};
}

}  // namespace sluice::engine
