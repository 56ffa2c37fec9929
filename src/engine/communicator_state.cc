#include "engine/communicator_state.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "kernels/convert.h"

namespace sluice::engine {

CommunicatorState::CommunicatorState(std::unique_ptr<transport::Group> group,
                                     std::shared_ptr<RankContext> context, Choices choices,
                                     std::uint64_t id)
    : context_{std::move(context)},
      endpoint_{std::move(group)},
      choices_{std::move(choices)},
      execution_{endpoint_},
      eager_{endpoint_},
      handover_{endpoint_},
      detector_{endpoint_.group()},
      id_{id} {
  constexpr std::size_t kUsuallyInFlight = 64;
  queue_.reserve(kUsuallyInFlight);
  inbox_.reserve(kUsuallyInFlight);
  batch_.reserve(kUsuallyInFlight);
  const auto lock = context_->lock();
  context_->communicators.push_back(this);
}

CommunicatorState::~CommunicatorState() {
  destructor_lock_ = context_->lock();
  std::erase(context_->communicators, this);
  if (!is_complete(issued_))  // peers may still read this rank's memory
    fail({Code::PeerLost, "this rank has left"}, kOwn);
  if (!context_->communicators.empty()) return;
  if (destructor_lock_.owns_lock()) destructor_lock_.unlock();
  context_->progress_thread.reset();
}

std::uint64_t CommunicatorState::next_split_id(int colour) {
  return base::mixed({id_, ++splits_, static_cast<std::uint64_t>(colour)});
}

Result<transport::MemoryBlock> CommunicatorState::allocate(std::size_t bytes) {
  const auto lock = context_->lock();
  Result<transport::MemoryBlock> block = group().memory().allocate(bytes);
  if (block.ok()) blocks_.push_back(block.value());
  return block;
}

void CommunicatorState::release(const transport::MemoryBlock& block) {
  const auto lock = context_->lock();
  std::erase_if(blocks_, [&](const transport::MemoryBlock& each) { return each.id == block.id; });
  // After a failure, or while submitted collectives wait for the progress thread, ranks may still
  // read and write the block. It is then freed when the process ends.
  if (!has_failed() && is_complete(issued_)) group().memory().release(block);
}

transport::MemoryLocation CommunicatorState::location_of(const std::byte* data,
                                                         std::size_t bytes) const {
  for (const transport::MemoryBlock& block : blocks_) {
    const bool inside =
        !std::less<>{}(data, block.data) && !std::less<>{}(block.data + block.bytes, data + bytes);
    if (inside) return {block.id, static_cast<std::uint64_t>(data - block.data)};
  }
  return {};
}

void CommunicatorState::push(const Request& request) {
  // Completed requests make room, so that a full queue does not grow in a steady state.
  if (queue_.size() == queue_.capacity() && head_ > 0) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  queue_.push_back(request);
}

void CommunicatorState::pop() {
  if (++head_ < queue_.size()) return;
  queue_.clear();
  head_ = 0;
}

Communicator::Slice CommunicatorState::slice(std::size_t count, Rank rank) const {
  const Chunking chunking{group().size()};
  const auto elements = static_cast<std::int64_t>(count);
  const auto first = static_cast<std::size_t>(chunking.begin(rank, elements));
  return {first, static_cast<std::size_t>(chunking.begin(rank + 1, elements)) - first};
}

Result<Choice*> CommunicatorState::choose(Collective collective, std::size_t bytes,
                                          const CollectiveOptions& options) {
  const auto lock = context_->lock();
  return choices_.choose(collective, static_cast<std::int64_t>(bytes), options.root,
                         options.algorithm);
}

Result<Request> CommunicatorState::make_request(Collective collective, Elements data,
                                                const CollectiveOptions& options) const {
  if (has_failed()) return failure_;
  if (data.data() == nullptr && data.count() > 0) {
    return Status{Code::InvalidArgument,
                  base::format("{} of {} {}: the pointer is null", name(collective), data.count(),
                               name(data.type()))};
  }
  const bool reduces = is_reduction(collective);
  if (reduces && !is_legal(data.type(), options.op)) {
    return Status{Code::InvalidArgument,
                  base::format("{}: {} of {} is not possible; docs/types.md lists what is",
                               name(collective), name(options.op), name(data.type()))};
  }
  Request request{.number = issued_ + 1,
                  .collective = collective,
                  .type = data.type(),
                  .op = reduces ? options.op : ReduceOp::Sum,
                  .root = has_root(collective) ? options.root : 0,
                  .count = data.count(),
                  .data = static_cast<std::byte*>(data.data())};
  if (!options.algorithm.empty()) {
    const Result<const Algorithm*> asked = find_named(options.algorithm);
    if (!asked.ok()) return asked.status();
    request.algorithm = asked.value();
  }
  return request;
}

Result<std::uint64_t> CommunicatorState::issue(Collective collective, Elements data,
                                               const CollectiveOptions& options) {
  Result<Request> request = make_request(collective, data, options);
  if (!request.ok()) return request.status();
  const auto lock = context_->lock();
  return start(request.value());
}

// REQUIRES: the caller holds the context's mutex if there is a progress thread.
Result<std::uint64_t> CommunicatorState::start(Request& request) {
  enqueue_submitted();
  if (Status status = enqueue(request); !status.ok()) return status;
  advance();
  return ++issued_;
}

// Whether input and output of such a call fit each other.
Status CommunicatorState::check_apart(Collective collective, ConstElements input, Elements output,
                                      bool has_output) const {
  const auto refused = [&](const std::string& why) {
    return Status{Code::InvalidArgument, base::format("{}: {}", name(collective), why)};
  };
  if (input.data() == nullptr && input.count() > 0) return refused("the input's pointer is null");
  if (!has_output) return {};
  if (output.data() == nullptr && output.count() > 0)
    return refused("the output's pointer is null");
  if (input.type() != output.type()) {
    return refused(base::format("the input is of {} but the output of {}", name(input.type()),
                                name(output.type())));
  }
  const bool gathers = collective == Collective::AllGather;
  const bool scatters = collective == Collective::ReduceScatter;
  const std::size_t fits = gathers    ? slice(output.count(), group().rank()).count
                           : scatters ? slice(input.count(), group().rank()).count
                                      : input.count();
  if (fits != (gathers ? input.count() : output.count())) {
    return refused(base::format("{} has {} elements instead of {}",
                                gathers ? "the input" : "the output",
                                gathers ? input.count() : output.count(), fits));
  }
  const auto* const in = static_cast<const std::byte*>(input.data());
  const auto* const out = static_cast<const std::byte*>(output.data());
  const bool overlap =
      std::less<>{}(in, out + output.bytes()) && std::less<>{}(out, in + input.bytes());
  if (overlap) return refused("input and output overlap; pass one of them to work in place");
  return {};
}

Result<std::uint64_t> CommunicatorState::issue(Collective collective, ConstElements input,
                                               Elements output, const CollectiveOptions& options) {
  const bool has_output = collective != Collective::Reduce || group().rank() == options.root;
  if (Status status = check_apart(collective, input, output, has_output); !status.ok())
    return status;
  const bool fits_output = has_output && collective != Collective::ReduceScatter;
  const std::size_t count = collective == Collective::AllGather ? output.count() : input.count();
  const auto lock = context_->lock();
  std::byte* const data =
      fits_output ? static_cast<std::byte*>(output.data()) : input_copies_.acquire(input.bytes());
  const auto give_up = [&](const Status& status) {
    if (!fits_output) input_copies_.release(data);
    return status;
  };
  Result<Request> request = make_request(collective, {data, count, input.type()}, options);
  if (!request.ok()) return give_up(request.status());
  request.value().is_copy = !fits_output;
  if (collective == Collective::ReduceScatter)
    request.value().output = static_cast<std::byte*>(output.data());
  const std::size_t first =
      collective == Collective::AllGather ? slice(count, group().rank()).first : 0;
  kernels::copy(data + first * size_of(input.type()), input.data(), input.bytes());
  const Result<std::uint64_t> issued = start(request.value());
  return issued.ok() ? issued : give_up(issued.status());
}

// Hands out the result of a collective that ran in a copy of its input.
void CommunicatorState::deliver(const Request& request) {
  if (request.output != nullptr) {
    const Communicator::Slice own = slice(request.count, group().rank());
    const std::size_t size = size_of(request.type);
    kernels::copy(request.output, request.data + own.first * size, own.count * size);
  }
  input_copies_.release(request.data);
}

Result<std::uint64_t> CommunicatorState::submit(Collective collective, Elements data,
                                                const CollectiveOptions& options,
                                                ProgressHooks* hooks) {
  Result<Request> request = make_request(collective, data, options);
  if (!request.ok()) return request.status();
  request.value().hooks = hooks;
  if (!context_->progress_thread)
    context_->progress_thread = std::make_unique<ProgressThread>(*context_, group());
  {
    const std::lock_guard lock{inbox_mutex_};
    inbox_.push_back(request.value());
  }
  context_->progress_thread->wake();
  return ++issued_;
}

// Queues the submitted requests, in the order of issue.
void CommunicatorState::enqueue_submitted() {
  if (!context_->progress_thread) return;
  batch_.clear();
  {
    const std::lock_guard lock{inbox_mutex_};
    std::swap(batch_, inbox_);
  }
  for (Request& request : batch_) {
    if (has_failed()) return;
    if (request.hooks != nullptr) request.hooks->load();
    if (Status status = enqueue(request); !status.ok()) fail(std::move(status), group().rank());
  }
}

// Chooses the algorithm, unless the caller did, and puts the request into the queue.
Status CommunicatorState::enqueue(Request& request) {
  const std::size_t bytes = request.bytes();
  const Result<Choice*> chosen =
      choices_.choose(request.collective, static_cast<std::int64_t>(bytes), request.root,
                      request.algorithm == nullptr ? std::string_view{} : request.algorithm->name);
  if (!chosen.ok()) return chosen.status();
  Choice& choice = *chosen.value();
  request.algorithm = choice.algorithm;
  request.choice = &choice;
  request.first_use = !std::exchange(choice.used, true);
  sign(request);
  request.location = location_of(request.data, bytes);
  request.eager = choice.algorithm->name == "exchange" && bytes <= transport::kSlotBytes &&
                  !endpoint_.has_network();
  push(request);
  return {};
}

void CommunicatorState::begin_next() {
  const Request& next = head();
  transport::StatusBoard& board = group().own_board();
  board.kind.store(next.kind, std::memory_order_relaxed);
  board.count.store(next.count, std::memory_order_relaxed);
  board.signature.store(next.signature, std::memory_order_relaxed);
  board.step.store(0, std::memory_order_relaxed);
  board.entered.store(next.number, std::memory_order_release);
  handing_over_ = next.first_use;
  running().begin(next);
  begun_ = true;
}

void CommunicatorState::advance() {
  while (!has_failed() && !is_idle()) {
    if (!begun_) begin_next();
    const Result<bool> done = running().advance();
    if (!done.ok()) return fail_running(done.status());
    if (!done.value()) return;
    if (std::exchange(handing_over_, false)) {
      Choice& choice = *head().choice;
      if (choice.plan == nullptr) choices_.complete(choice, handover_.packed_marks());
      running().begin(head());
      continue;
    }
    if (head().hooks != nullptr) head().hooks->unload();
    if (head().is_copy) deliver(head());
    completed_.store(head().number, std::memory_order_release);
    begun_ = false;
    if (reported_waiting_) report_waiting(kOwn);
    pop();
    context_->notify();
  }
}

bool CommunicatorState::progress() {
  enqueue_submitted();
  advance();
  return is_idle() || has_failed();
}

void CommunicatorState::poll() {
  constexpr auto kBetweenChecks = std::chrono::milliseconds{100};
  std::unique_lock<std::mutex> lock;
  if (!context_->try_lock(lock)) return;
  context_->progress();
  const auto now = transport::Clock::now();
  if (now - last_check_ < kBetweenChecks) return;
  last_check_ = now;
  check_peers();
}

Status CommunicatorState::wait(std::uint64_t number, std::chrono::milliseconds deadline) {
  const auto done = [&] {
    std::unique_lock<std::mutex> lock;
    if (context_->try_lock(lock)) context_->progress();
    return is_complete(number) || has_failed();
  };
  const auto done_by = [&](transport::Clock::time_point until) {
    return context_->progress_thread
               ? wait_beside_progress_thread(until, done)
               : transport::wait_until(group().own_doorbell(), *context_->waiter, until,
                                       context_->wait_policy, done, [&] { check_peers(); });
  };
  const auto result = [&] { return is_complete(number) ? Status{} : failure_; };
  // One look before the clock is read, and before a rank yields a core that it shares: peers of
  // other cores are about to answer. More looks take time from peers of this core.
  if (done()) return result();
  auto until = transport::Clock::now() + deadline;
  while (!done_by(until)) {
    const auto lock = context_->lock();
    enqueue_submitted();  // the collective may not have begun
    check_peers();
    if (is_complete(number) || has_failed()) break;
    until = last_moved_ + deadline;
    if (until <= transport::Clock::now()) fail_stalled(deadline);
  }
  return result();
}

// The progress thread sleeps on the doorbell and the sockets, and checks the peers. This caller
// sleeps until the thread notifies it.
template <class Done>
bool CommunicatorState::wait_beside_progress_thread(transport::Clock::time_point until,
                                                    const Done& done) {
  constexpr int kLeastYields = 20;
  transport::Waiter on_futex;
  for (int i = 0; i < std::max(kLeastYields, context_->wait_policy.yields); ++i) {
    if (done()) return true;
    transport::yield();
  }
  context_->progress_thread->wake();
  return transport::wait_until(context_->completion, on_futex, until, {.spins = 0, .yields = 0},
                               done, [] {});
}

}  // namespace sluice::engine
