// timeline.h - when what was computed, waited for and sent at one rank.
//
//   sluice::Timeline timeline{100'000};
//   parallel.set_timeline(&timeline);                     // a DataParallel, which tells it
//   ...                                                   // steps
//   file << timeline.chrome_trace(comm.rank());
//
// Room for a fixed number of events is made at the start; what does not fit is counted, not kept.
// Thread-safety: add() from any thread. The rest is for the compute thread, and the readers among
// it want that no bucket is under way.
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
  enum class Lane : std::uint8_t {
    Compute,   // what the thread that computes does
    Progress,  // what becomes of a bucket, by its number
  };
  struct Event {
    const char* name = nullptr;  // must outlive the timeline: a literal
    Lane lane = Lane::Compute;
    std::int64_t number = -1;  // of the bucket; -1: none
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  explicit Timeline(std::size_t capacity);

  // Since the timeline was made.
  std::int64_t now_ns() const;

  void add(const Event& event) noexcept;
  // The compute thread waited for communication.
  void add_wait(const char* name, std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  // A step ends here, and the next begins. The first call only begins one.
  void end_step() noexcept;

  std::span<const Event> events() const;
  std::size_t dropped() const;

  // Of the steps that have ended: the part of their time that the compute thread waited for
  // communication. 0 before the first has.
  double exposed_comm_fraction() const;
  // For communication, in all, the step under way included.
  double waited_s() const { return static_cast<double>(all_waited_ns_) * 1e-9; }
  // Forgets the steps so far (a warm-up), not the events.
  void restart_steps();

  // All events, as chrome://tracing and Perfetto read them; `rank` is shown as the process, with
  // what `kind` says of it: "rank 3, simulated".
  std::string chrome_trace(int rank, std::string_view kind = {}) const;

 private:
  std::chrono::steady_clock::time_point start_;
  std::vector<Event> events_;
  std::atomic<std::size_t> added_{0};
  std::int64_t step_begin_ns_ = -1;
  std::int64_t step_waited_ns_ = 0;  // in the step under way
  std::int64_t waited_ns_ = 0;       // in steps that ended
  std::int64_t all_waited_ns_ = 0;
  std::int64_t steps_ns_ = 0;
};

}  // namespace sluice
