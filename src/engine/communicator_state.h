// communicator_state.h - a communicator at one rank: its queue of collectives and how far they are.
//
// Collectives of one communicator run one after the other, in the order in which they were issued,
// which is the same at every rank; those of several communicators of a rank run side by side.
// Thread-safety: the communicators of a rank belong to one thread at a time.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/eager.h"
#include "engine/endpoint.h"
#include "engine/execution.h"
#include "engine/request.h"
#include "sluice/communicator.h"

namespace sluice::detail {

// All communicators of one rank: wait() on one of them drives them all.
struct RankContext {
  std::vector<CommunicatorState*> communicators;
};

class PoolState {
 public:
  PoolState(std::shared_ptr<CommunicatorState> communicator, Segment segment);
  ~PoolState();
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;
  const Segment& segment() const { return segment_; }

 private:
  std::shared_ptr<CommunicatorState> communicator_;
  Segment segment_;
};

class CommunicatorState {
 public:
  CommunicatorState(std::unique_ptr<Group> group, std::shared_ptr<RankContext> context);
  ~CommunicatorState();
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  const Group& group() const { return endpoint_.group(); }
  const std::shared_ptr<RankContext>& context() const { return context_; }
  const Status& failure() const { return failure_; }
  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }
  std::chrono::milliseconds deadline() const { return deadline_; }

  Result<Segment> allocate(std::size_t bytes);
  void release(const Segment& segment);

  // Queues a collective and starts it if it is the next; returns its number.
  Result<std::uint64_t> issue(Collective collective, void* data, std::size_t count,
                              const CollectiveOptions& options);
  bool is_complete(std::uint64_t number) const { return completed_ >= number; }

  // Moves everything of this rank that can be moved, on all its communicators.
  void advance_all();
  // Ok when the collective is complete; else the failure, which is then this communicator's.
  Status wait(std::uint64_t number, std::chrono::milliseconds deadline);

 private:
  struct Pending {
    Request request;
    std::uint64_t signature = 0;
    std::shared_ptr<const Plan> plan;
    bool eager = false;
    std::byte* data = nullptr;
    Location location;
  };

  void advance();
  void begin_next();
  void fail(Status status);
  void look_after_peers();
  Status mismatch_with_any(const Request& request) const;
  Status stalled(std::chrono::milliseconds waited);
  std::string who_where() const;
  Rank culprit() const;
  Rank first_gone() const;
  Location location_of(const std::byte* data, std::size_t bytes) const;
  const Algorithm& choose(Collective collective, std::size_t bytes,
                          const CollectiveOptions& options) const;

  std::shared_ptr<RankContext> context_;
  Endpoint endpoint_;
  Execution execution_;
  Eager eager_;
  std::deque<Pending> queue_;
  bool begun_ = false;  // the first of the queue is under way
  std::uint64_t issued_ = 0;
  std::uint64_t completed_ = 0;
  std::vector<Segment> segments_;
  Status failure_;
  std::chrono::milliseconds deadline_ = std::chrono::minutes{10};
};

}  // namespace sluice::detail
