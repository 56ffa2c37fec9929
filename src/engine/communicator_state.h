// communicator_state.h - a communicator at one rank: its queue of collectives and how far they are.
//
// Collectives of one communicator run one after the other, in the order in which they were issued,
// which is the same at every rank; those of several communicators of a rank run side by side.
// Thread-safety: the communicators of a rank belong to one thread at a time, and to its progress
// thread where it has one (rank_context.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "engine/eager.h"
#include "engine/endpoint.h"
#include "engine/execution.h"
#include "engine/failure/failure_detector.h"
#include "engine/internal_collectives.h"
#include "engine/rank_context.h"
#include "engine/select/choices.h"
#include "sluice/communicator.h"

namespace sluice::engine {

inline constexpr std::chrono::milliseconds kDefaultDeadline = std::chrono::minutes{10};

class PoolState {
 public:
  PoolState(std::shared_ptr<CommunicatorState> communicator, transport::MemoryBlock segment);
  ~PoolState();
  PoolState(const PoolState&) = delete;
  PoolState& operator=(const PoolState&) = delete;
  const transport::MemoryBlock& segment() const { return segment_; }

 private:
  std::shared_ptr<CommunicatorState> communicator_;
  transport::MemoryBlock segment_;
};

class CommunicatorState {
 public:
  CommunicatorState(std::unique_ptr<transport::Group> group, std::shared_ptr<RankContext> context,
                    Choices choices, std::uint64_t id = 0);
  ~CommunicatorState();
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  const transport::Group& group() const { return endpoint_.group(); }
  const std::shared_ptr<RankContext>& context() const { return context_; }
  Status failure() const { return has_failed() ? failure_ : Status{}; }
  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }
  std::chrono::milliseconds deadline() const { return deadline_; }
  const Choices& choices() const { return choices_; }
  // From now on. All ranks must be given the same ones at the same place of their calls.
  void set_choices(Choices choices) { choices_ = std::move(choices); }

  // What the next communicator split from this one is known by; the same at all its ranks.
  std::uint64_t next_part(int colour);

  Result<transport::MemoryBlock> allocate(std::size_t bytes);
  void release(const transport::MemoryBlock& segment);

  // What such a collective runs by.
  Result<const Choice*> choose(Collective collective, std::size_t count,
                               const CollectiveOptions& options);
  // Queues a collective and starts it if it is the next; returns its number.
  Result<std::uint64_t> issue(Collective collective, void* data, std::size_t count,
                              const CollectiveOptions& options);
  // The same for the progress thread, which is started if there is none.
  Result<std::uint64_t> hand_over(Collective collective, void* data, std::size_t count,
                                  const CollectiveOptions& options, ProgressHooks* errand);
  bool is_complete(std::uint64_t number) const {
    return completed_.load(std::memory_order_acquire) >= number;
  }
  // Waits for all that was handed over to the progress thread, on any communicator of this rank.
  Status settle();

  // For who never waits: as above, and looks after the peers now and then.
  void poll();
  // Ok when the collective is complete; else the failure, which is then this communicator's.
  Status wait(std::uint64_t number, std::chrono::milliseconds deadline);

 private:
  // What was handed over and has not been taken up.
  struct Parcel {
    std::uint64_t number = 0;
    Collective collective = Collective::AllReduce;
    std::byte* data = nullptr;
    std::size_t count = 0;
    DataType type = DataType::F32;
    ReduceOp op = ReduceOp::Sum;
    Rank root = 0;
    const Algorithm* algorithm = nullptr;  // null: chosen by size
    ProgressHooks* errand = nullptr;
  };
  struct Pending {
    Request request;
    std::uint64_t signature = 0;
    const Plan* plan = nullptr;
    bool eager = false;
    std::byte* data = nullptr;
    transport::MemoryLocation location;
    ProgressHooks* errand = nullptr;
  };

  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  bool is_idle() const { return head_ == queue_.size(); }
  const Pending& head() const { return queue_[head_]; }
  void push(const Pending& pending);
  void pop();
  RunningCollective& running() {
    return head().eager ? static_cast<RunningCollective&>(eager_) : execution_;
  }

  // Moves everything of a rank that can be moved, on all its communicators; true: nothing is left.
  static bool drive(RankContext& context);
  void start_progress_thread();
  Result<Parcel> parcel_of(Collective collective, void* data, std::size_t count,
                           const CollectiveOptions& options);
  Status enqueue(const Parcel& parcel);
  void take_up();

  template <class Done>
  bool wait_beside_progress_thread(transport::Clock::time_point until, const Done& done);

  void advance();
  void begin_next();
  void break_off(const Status& status);
  void fail(Status status, Rank culprit, std::uint64_t in = 0);
  void look_after_peers();
  void stall(std::chrono::milliseconds waited);
  void tell_wait(Rank whom);
  void fail_if_mismatched();
  void fail_mismatched(Rank peer);
  std::optional<Request> request_of(Rank peer) const;
  void note_moves();
  std::string who_where();
  transport::MemoryLocation location_of(const std::byte* data, std::size_t bytes) const;

  std::shared_ptr<RankContext> context_;
  std::unique_lock<std::mutex> leaving_;  // held while the members below go
  Endpoint endpoint_;
  Choices choices_;
  Execution execution_;
  Eager eager_;
  FailureDetector watch_;
  std::vector<Pending> queue_;  // from head_ on
  std::size_t head_ = 0;
  bool begun_ = false;      // the first of the queue is under way
  bool told_wait_ = false;  // the board says whom it waits for
  std::uint64_t issued_ = 0;
  std::atomic<std::uint64_t> completed_{0};
  mutable std::mutex inbox_mutex_;  // held only to put in and take out
  std::vector<Parcel> inbox_;
  std::vector<Parcel> taken_;  // out of it: kept for its memory
  std::uint64_t id_;
  std::uint64_t parts_ = 0;  // split from it so far
  std::vector<transport::MemoryBlock> segments_;
  Status failure_;  // once failed_
  std::atomic<bool> failed_{false};
  std::chrono::milliseconds deadline_ = kDefaultDeadline;
  transport::Clock::time_point last_look_ = transport::Clock::now();
  transport::Clock::time_point last_told_{};  // to ranks of other nodes
  std::uint64_t moved_ = 0;                   // of the present collective, when last looked
  transport::Clock::time_point last_moved_{};
};

}  // namespace sluice::engine
