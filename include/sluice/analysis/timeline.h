// timeline.h - records when a rank computes, waits and sends.
//
//   sluice::Timeline timeline{100'000};
//   parallel.set_timeline(&timeline);                     // a DataParallel adds its events
//   ...                                                   // training steps
//   file << timeline.chrome_trace(comm.rank());
//
// The capacity is fixed at the start; further events are counted, but not kept.
// Thread-safety: any thread may call add(). Only the compute thread may call the other functions;
// it may call events(), dropped() and chrome_trace() only while no bucket is in flight.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/version.h"

namespace sluice {

class SLUICE_API Timeline {
 public:
  enum class Thread : std::uint8_t {
    Compute,   // the compute thread
    Progress,  // the progress thread; the event belongs to a bucket
  };
  struct Event {
    const char* name = nullptr;  // must outlive the timeline; use a literal
    Thread thread = Thread::Compute;
    std::int64_t number = -1;  // the bucket's number; -1: no bucket
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  // `capacity`: the number of events that it keeps.
  explicit Timeline(std::size_t capacity);

  // The time since the timeline was made.
  std::int64_t now_ns() const;

  void add(const Event& event) noexcept;
  // Adds an event in which the compute thread waited for communication.
  void add_wait(const char* name, std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  // Ends a training step and begins the next one. The first call only begins a step.
  void end_step() noexcept;

  std::span<const Event> events() const;
  // The number of events beyond the capacity.
  std::size_t dropped() const;

  // The time that the compute thread waited for communication, divided by the time of all ended
  // steps; 0 before the first step has ended.
  double exposed_comm_fraction() const;
  // The time that the compute thread waited for communication, including the step under way.
  double waited_s() const { return static_cast<double>(all_waited_ns_) * 1e-9; }
  // Discards the steps so far (for example a warm-up), but keeps the events.
  void restart_steps();

  // All events as JSON text for chrome://tracing or Perfetto. The process is named "rank 3", or
  // with the kind "simulated" it is named "rank 3, simulated".
  std::string chrome_trace(int rank, std::string_view kind = {}) const;

 private:
  std::chrono::steady_clock::time_point start_;
  std::vector<Event> events_;
  std::atomic<std::size_t> added_{0};
  std::int64_t step_begin_ns_ = -1;
  std::int64_t step_waited_ns_ = 0;  // in the step under way
  std::int64_t waited_ns_ = 0;       // in ended steps
  std::int64_t all_waited_ns_ = 0;
  std::int64_t steps_ns_ = 0;
};

}  // namespace sluice
