// communicator_state.h - a communicator at one rank: the queue of its collectives, and their
// progress.
//
// Collectives of one communicator run one after the other, in the order of issue, which is the same
// at every rank. Those of several communicators of a rank run side by side.
//
// The handling of failures is in failure/: failure_detector.h finds the culprit, and
// communicator_failure.cc has the functions of this class that fail the communicator.
//
// Thread-safety: the communicators of a rank belong to one thread at a time, and to its progress
// thread if there is one (rank_context.h).
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
#include "engine/endpoint.h"
#include "engine/execution.h"
#include "engine/failure/failure_detector.h"
#include "engine/input_copies.h"
#include "engine/internal_collectives.h"
#include "engine/rank_context.h"
#include "engine/select/choices.h"
#include "engine/verdict_handover.h"
#include "sluice/communicator.h"

namespace sluice::engine {

inline constexpr std::chrono::milliseconds kDefaultDeadline = std::chrono::minutes{10};

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
  // Takes effect for later calls. All ranks must set the same choices between the same two calls.
  void set_choices(Choices choices) { choices_ = std::move(choices); }

  // The id of the next communicator split from this one; the same at all its ranks.
  std::uint64_t next_split_id(int colour);

  Result<transport::MemoryBlock> allocate(std::size_t bytes);
  void release(const transport::MemoryBlock& block);

  // The algorithm and plan that such a call would run.
  Result<Choice*> choose(Collective collective, std::size_t bytes,
                         const CollectiveOptions& options);
  Communicator::Slice slice(std::size_t count, Rank rank) const;
  // Queues a collective, and starts it if it is the next. Returns its number.
  Result<std::uint64_t> issue(Collective collective, Elements data,
                              const CollectiveOptions& options);
  Result<std::uint64_t> issue(Collective collective, ConstElements input, Elements output,
                              const CollectiveOptions& options);
  // Hands a collective to the progress thread, and starts the thread if there is none. Returns its
  // number.
  Result<std::uint64_t> submit(Collective collective, Elements data,
                               const CollectiveOptions& options, ProgressHooks* hooks);
  bool is_complete(std::uint64_t number) const {
    return completed_.load(std::memory_order_acquire) >= number;
  }

  // Ok when the collective is complete. An error is the failure of this communicator.
  Status wait(std::uint64_t number, std::chrono::milliseconds deadline);
  Status wait_for_all() { return is_complete(issued_) ? Status{} : wait(issued_, deadline_); }
  // For callers that poll and never wait: moves the data that can be moved, and checks the peers
  // now and then.
  void poll();

  // REQUIRES, for these two: the caller holds the context's mutex if there is a progress thread.
  // Moves the data that can be moved. True: nothing is left to do.
  bool progress();
  // Fails the communicator if the present collective needs a peer that is lost.
  void check_peers();
  // Makes the network of a communicator of some of these ranks. Blocks until all of them call it,
  // or until one of them is lost, which fails this communicator too. REQUIRES: no collective in
  // flight.
  Result<std::unique_ptr<transport::Network>> split_network(const std::vector<Rank>& members,
                                                            std::uint64_t id);

 private:
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  bool is_idle() const { return head_ == queue_.size(); }
  const Request& head() const { return queue_[head_]; }
  void push(const Request& request);
  void pop();
  RunningCollective& running() {
    if (handing_over_) return handover_;
    return head().eager ? static_cast<RunningCollective&>(eager_) : execution_;
  }
  transport::MemoryLocation location_of(const std::byte* data, std::size_t bytes) const;

  Result<Request> make_request(Collective collective, Elements data,
                               const CollectiveOptions& options) const;
  Status check_apart(Collective collective, ConstElements input, Elements output,
                     bool has_output) const;
  Result<std::uint64_t> start(Request& request);
  Status enqueue(Request& request);
  void enqueue_submitted();
  void begin_next();
  void deliver(const Request& request);
  void advance();
  template <class Done>
  bool wait_beside_progress_thread(transport::Clock::time_point until, const Done& done);

  // failure/communicator_failure.cc
  void fail_running(const Status& status);
  void fail_stalled(std::chrono::milliseconds waited);
  void fail_if_mismatched();
  bool is_mismatched(Rank peer) const;
  bool must_look_at_all_peers();
  void fail_mismatched(Rank peer);
  void fail(Status status, Rank culprit, std::uint64_t culprits_collective = 0);
  void fail_by(Status status, const Blame& blame);
  void poison(Status status, Rank culprit, std::uint32_t how, std::uint64_t culprits_collective);
  void fail_others_with(Rank culprit);
  bool record_call_of(Rank peer);
  std::optional<Request> call_of(Rank peer) const;
  std::string describe_position();
  void report_waiting(Rank peer);

  std::shared_ptr<RankContext> context_;
  std::unique_lock<std::mutex> destructor_lock_;  // held while the members below are destroyed
  InputCopies input_copies_;
  Endpoint endpoint_;
  Choices choices_;
  Execution execution_;
  EagerExchange eager_;
  VerdictHandover handover_;
  FailureDetector detector_;
  std::vector<Request> queue_;  // from head_ on
  std::size_t head_ = 0;
  bool begun_ = false;             // the first collective of the queue has begun
  bool handing_over_ = false;      // it waits for the verdict on its schedule, or passes it on
  bool reported_waiting_ = false;  // the status board names a peer that this rank waits for
  std::uint64_t issued_ = 0;
  std::atomic<std::uint64_t> completed_{0};
  std::mutex inbox_mutex_;      // held only to add and to remove requests
  std::vector<Request> inbox_;  // submitted to the progress thread
  std::vector<Request> batch_;  // removed from the inbox; a member, so that its memory is reused
  std::uint64_t id_;
  std::uint64_t splits_ = 0;  // communicators split from this one so far
  std::vector<transport::MemoryBlock> blocks_;
  Status failure_;  // valid once failed_
  std::atomic<bool> failed_{false};
  std::chrono::milliseconds deadline_ = kDefaultDeadline;
  transport::Clock::time_point last_check_ = transport::Clock::now();
  transport::Clock::time_point last_look_{};    // at all peers
  transport::Clock::time_point last_report_{};  // the last status update to other nodes
  std::uint64_t moved_ = 0;                     // of the present collective, at the last check
  transport::Clock::time_point last_moved_{};
};

}  // namespace sluice::engine
