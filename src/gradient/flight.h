// flight.h - the buckets of one step and its tail, from the first that leaves to the last that
// arrives. One step at a time.
//
// Thread-safety: one thread at a time; the progress thread runs the errands.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gradient/bucket.h"
#include "gradient/tail.h"

namespace sluice {

class Flight {
 public:
  // What it refers to must outlive the flight.
  struct Plan {
    const std::vector<GradientSpec>& gradients;
    const PoolLayout& layout;
    const std::vector<BucketRange>& buckets;
    WireType wire = WireType::F32;
    const WireBuffer* buffer = nullptr;  // if anything is narrowed
    const std::string& algorithm;
  };
  Flight(Communicator communicator, const Plan& plan);
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  bool begun() const { return begun_; }

  // REQUIRES: not begun. `passage` without the wire type and the number of ranks.
  void begin(std::byte* pool, const Passage& passage, Timeline* timeline);
  // All gradients of a bucket are there.
  void set_ready(std::size_t bucket) { buckets_[bucket].set_ready(); }
  // The next buckets leave, up to but not including bucket `end`. REQUIRES: begun.
  void send(std::size_t end);
  // The tail leaves. REQUIRES: all buckets have been sent.
  void send_tail(const std::vector<std::size_t>& used);
  // Returns when all results are there; then it is not begun. Throws as Work::wait() does.
  void wait();

  // Of the step that was waited for last, until the next begins.
  const Step& step() const { return step_; }
  const Tail& tail() const { return tail_; }

 private:
  struct TailErrand final : Errand {
    explicit TailErrand(Flight& owner) : flight{owner} {}
    void load() override { flight.tail_.set_faults(flight.step_.faults); }
    Flight& flight;
  };
  void issue(void* data, std::size_t count, const CollectiveOptions& options, Errand& errand);

  // Errands go last: once the last handle of the communicator is gone, nobody runs them.
  Step step_;
  std::vector<Bucket> buckets_;
  TailErrand tail_errand_{*this};
  Communicator communicator_;
  Tail tail_;
  std::vector<Work> works_;
  CollectiveOptions options_;
  std::size_t sent_ = 0;
  bool begun_ = false;
};

}  // namespace sluice
