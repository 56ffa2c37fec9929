// epoll_sleeper.h - a rank that has peers on other nodes sleeps on all its sockets at once, and on
// a descriptor by which the peers of its own node wake it.
//
// Sockets are watched for changes, not for states: who sleeps has looked at every socket that it
// can use before, so what lies in others, for later, does not wake it again and again.
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "sluice/status.h"
#include "transport/wait.h"

namespace sluice::transport {

class EpollSleeper final : public Sleeper {
 public:
  // `waker` becomes readable when a peer of this node rings; it must outlive the sleeper's use.
  static Result<std::shared_ptr<EpollSleeper>> make(int waker);

  std::uint32_t kind() const override { return kOnDescriptor; }
  bool sleep(Doorbell& bell, std::uint32_t rings, Clock::time_point until) override;

  // A socket wakes from now on, until it is closed. What comes on one of notes is for who looks
  // after the peers.
  void watch(int socket, bool of_notes);

 private:
  EpollSleeper(base::Fd epoll, int waker) : epoll_{std::move(epoll)}, waker_{waker} {}

  base::Fd epoll_;
  int waker_;
  Clock::time_point last_look_ = Clock::now();
};

}  // namespace sluice::transport
