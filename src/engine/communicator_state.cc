#include "engine/communicator_state.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/random.h"

namespace sluice::engine {

PoolState::PoolState(std::shared_ptr<CommunicatorState> communicator,
                     transport::MemoryBlock segment)
    : communicator_{std::move(communicator)}, segment_{segment} {}

PoolState::~PoolState() { communicator_->release(segment_); }

CommunicatorState::CommunicatorState(std::unique_ptr<transport::Group> group,
                                     std::shared_ptr<RankContext> context, Choices choices,
                                     std::uint64_t id)
    : context_{std::move(context)},
      endpoint_{std::move(group)},
      choices_{std::move(choices)},
      execution_{endpoint_},
      eager_{endpoint_},
      watch_{endpoint_.group()},
      id_{id} {
  constexpr std::size_t kUsuallyInFlight = 64;
  queue_.reserve(kUsuallyInFlight);
  inbox_.reserve(kUsuallyInFlight);
  taken_.reserve(kUsuallyInFlight);
  const auto lock = context_->drive();
  context_->communicators.push_back(this);
}

CommunicatorState::~CommunicatorState() {
  leaving_ = context_->drive();
  std::erase(context_->communicators, this);
  if (!is_complete(issued_))  // left in the middle: peers may be reading
    fail({Code::PeerLost, "this rank has left"}, kOwn);
  if (!context_->communicators.empty()) return;
  if (leaving_.owns_lock()) leaving_.unlock();
  context_->progress.reset();
}

std::uint64_t CommunicatorState::next_part(int colour) {
  return base::mixed({id_, ++parts_, static_cast<std::uint64_t>(colour)});
}

Result<transport::MemoryBlock> CommunicatorState::allocate(std::size_t bytes) {
  const auto lock = context_->drive();
  Result<transport::MemoryBlock> segment = group().memory().allocate(bytes);
  if (segment.ok()) segments_.push_back(segment.value());
  return segment;
}

void CommunicatorState::release(const transport::MemoryBlock& segment) {
  const auto lock = context_->drive();
  std::erase_if(segments_,
                [&](const transport::MemoryBlock& each) { return each.id == segment.id; });
  // After a failure peers may still be reading and writing it; it goes with the process.
  // So does what waits for the progress thread to be taken up.
  if (!has_failed() && is_complete(issued_)) group().memory().release(segment);
}

transport::MemoryLocation CommunicatorState::location_of(const std::byte* data,
                                                         std::size_t bytes) const {
  for (const transport::MemoryBlock& segment : segments_) {
    const bool inside = !std::less<>{}(data, segment.data) &&
                        !std::less<>{}(segment.data + segment.bytes, data + bytes);
    if (inside) return {segment.id, static_cast<std::uint64_t>(data - segment.data)};
  }
  return {};
}

void CommunicatorState::push(const Pending& pending) {
  // What has been completed makes room, so that a full queue in a steady state does not grow.
  if (queue_.size() == queue_.capacity() && head_ > 0) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  queue_.push_back(pending);
}

void CommunicatorState::pop() {
  if (++head_ < queue_.size()) return;
  queue_.clear();
  head_ = 0;
}

Result<const Choice*> CommunicatorState::choose(Collective collective, std::size_t count,
                                                const CollectiveOptions& options) {
  const auto lock = context_->drive();
  const std::size_t bytes = count * size_of(options.type);
  return choices_.choose(collective, static_cast<std::int64_t>(bytes), options.root,
                         options.algorithm);
}

Result<CommunicatorState::Parcel> CommunicatorState::parcel_of(Collective collective, void* data,
                                                               std::size_t count,
                                                               const CollectiveOptions& options) {
  if (has_failed()) return failure_;
  Parcel parcel{.number = issued_ + 1,
                .collective = collective,
                .data = static_cast<std::byte*>(data),
                .count = count,
                .type = options.type,
                .op = options.op,
                .root = has_root(collective) ? options.root : 0};
  if (!options.algorithm.empty()) {
    const Result<const Algorithm*> asked = find_algorithm(options.algorithm);
    if (!asked.ok()) return asked.status();
    parcel.algorithm = asked.value();
  }
  return parcel;
}

Result<std::uint64_t> CommunicatorState::issue(Collective collective, void* data, std::size_t count,
                                               const CollectiveOptions& options) {
  const Result<Parcel> parcel = parcel_of(collective, data, count, options);
  if (!parcel.ok()) return parcel.status();
  const auto lock = context_->drive();
  take_up();
  if (Status status = enqueue(parcel.value()); !status.ok()) return status;
  advance();
  return ++issued_;
}

Result<std::uint64_t> CommunicatorState::hand_over(Collective collective, void* data,
                                                   std::size_t count,
                                                   const CollectiveOptions& options,
                                                   ProgressHooks* errand) {
  Result<Parcel> made = parcel_of(collective, data, count, options);
  if (!made.ok()) return made.status();
  Parcel parcel = made.value();
  parcel.errand = errand;
  if (!context_->progress) start_progress_thread();
  {
    const std::lock_guard lock{inbox_mutex_};
    inbox_.push_back(parcel);
  }
  context_->progress->wake();
  return ++issued_;
}

void CommunicatorState::start_progress_thread() {
  RankContext& context = *context_;
  // Beside a thread that computes: who spins takes the core from it.
  context.progress = std::make_unique<ProgressThread>(
      ProgressThread::Work{.bell = group().own_doorbell(),
                           .waiter = *context.waiter,
                           .wait_policy = transport::WaitPolicy::with_shared_cores(),
                           .drive =
                               [&context] {
                                 const std::lock_guard lock{context.driving};
                                 return drive(context);
                               },
                           .look_after_peers =
                               [&context] {
                                 const std::lock_guard lock{context.driving};
                                 for (CommunicatorState* each : context.communicators)
                                   each->look_after_peers();
                               },
                           .ring =
                               [&memory = group().memory(), &bell = group().own_doorbell(),
                                local = group().location(group().rank()).local] {
                                 if (transport::ring(bell)) memory.wake(local);
                               }});
}

// Queues what has been handed over, in the order of issue.
void CommunicatorState::take_up() {
  if (!context_->progress) return;
  taken_.clear();
  {
    const std::lock_guard lock{inbox_mutex_};
    std::swap(taken_, inbox_);
  }
  for (const Parcel& parcel : taken_) {
    if (has_failed()) return;
    if (parcel.errand != nullptr) parcel.errand->load();
    if (Status status = enqueue(parcel); !status.ok()) fail(std::move(status), group().rank());
  }
}

Status CommunicatorState::enqueue(const Parcel& parcel) {
  const std::size_t bytes = parcel.count * size_of(parcel.type);
  const Result<const Choice*> chosen =
      choices_.choose(parcel.collective, static_cast<std::int64_t>(bytes), parcel.root,
                      parcel.algorithm == nullptr ? std::string_view{} : parcel.algorithm->name);
  if (!chosen.ok()) return chosen.status();
  const Choice& choice = *chosen.value();

  Pending pending;
  pending.request = {
      parcel.number, parcel.collective,
      parcel.type,   parcel.op,
      parcel.root,   static_cast<std::uint8_t>(choice.algorithm - built_in_algorithms().data()),
      parcel.count};
  pending.signature = signature_of(pending.request);
  pending.plan = choice.plan.get();
  pending.eager = choice.algorithm->name == "exchange" && bytes <= transport::kSlotBytes &&
                  group().network() == nullptr;
  pending.data = parcel.data;
  pending.location = location_of(pending.data, bytes);
  pending.errand = parcel.errand;
  push(pending);
  return {};
}

void CommunicatorState::begin_next() {
  const Pending& next = head();
  transport::StatusBoard& board = group().own_board();
  board.kind.store(packed_kind(next.request), std::memory_order_relaxed);
  board.count.store(next.request.count, std::memory_order_relaxed);
  board.signature.store(next.signature, std::memory_order_relaxed);
  board.step.store(0, std::memory_order_relaxed);
  board.entered.store(next.request.number, std::memory_order_release);
  if (next.eager) {
    eager_.begin(next.request, next.signature, next.data);
  } else {
    execution_.begin(*next.plan, next.request, next.signature, next.data, next.location);
  }
  begun_ = true;
}

void CommunicatorState::advance() {
  while (!has_failed() && !is_idle()) {
    if (!begun_) begin_next();
    const Result<bool> done = running().advance();
    if (!done.ok()) return break_off(done.status());
    if (!done.value()) return;
    if (head().errand != nullptr) head().errand->unload();
    completed_.store(head().request.number, std::memory_order_release);
    begun_ = false;
    if (told_wait_) tell_wait(kOwn);
    pop();
    context_->announce();
  }
}

bool CommunicatorState::drive(RankContext& context) {
  bool settled = true;
  for (CommunicatorState* each : context.communicators) {
    each->take_up();
    each->advance();
    settled = settled && (each->is_idle() || each->has_failed());
  }
  return settled;
}

void CommunicatorState::poll() {
  constexpr auto kBetweenLooks = std::chrono::milliseconds{100};
  std::unique_lock<std::mutex> lock;
  if (!context_->try_drive(lock)) return;
  drive(*context_);
  const auto now = transport::Clock::now();
  if (now - last_look_ < kBetweenLooks) return;
  last_look_ = now;
  look_after_peers();
}

// The collective found out by itself that it cannot go on: says because of whom.
void CommunicatorState::break_off(const Status& status) {
  watch_.look();  // first: what a peer that gave up was calling comes with the news
  fail_if_mismatched();
  if (has_failed()) return;
  if (status.code() == Code::Mismatch) return fail_mismatched(running().differs());
  if (status.code() != Code::PeerLost)
    return fail({status.code(), base::format("{}: {}", who_where(), status.message())}, kOwn);
  const Blame blame = watch_.standstill(running());
  if (blame.mismatched) return fail_mismatched(blame.culprit);
  fail({Code::PeerLost, base::format("{}: {}", who_where(), blame.how)}, blame.culprit);
}

// Tells the peers, who then need not find out by themselves, and blame the same rank: why, before
// they see that nothing is to be had any more; and only then may the caller touch its memory.
void CommunicatorState::fail(Status status, Rank culprit, std::uint64_t in) {
  if (has_failed()) return;
  const bool mismatched = status.code() == Code::Mismatch;
  transport::StatusBoard& own = group().own_board();
  own.waits_for.store(0, std::memory_order_relaxed);
  own.blamed.store(culprit + 1, std::memory_order_relaxed);
  own.blamed_in.store(in, std::memory_order_relaxed);
  own.failed.store(mismatched ? transport::kMismatched : transport::kFailed,
                   std::memory_order_seq_cst);
  endpoint_.withdraw();
  failure_ = std::move(status);
  failed_.store(true, std::memory_order_release);
  for (Rank peer = 0; peer < group().size(); ++peer) {
    if (peer != group().rank() && group().is_local(peer)) group().ring(peer);
  }
  group().publish_status();
  context_->announce();
}

Status CommunicatorState::wait(std::uint64_t number, std::chrono::milliseconds deadline) {
  const auto done = [&] {
    std::unique_lock<std::mutex> lock;
    if (context_->try_drive(lock)) drive(*context_);
    return is_complete(number) || has_failed();
  };
  const auto done_by = [&](transport::Clock::time_point until) {
    return context_->progress
               ? wait_beside_progress_thread(until, done)
               : transport::wait_until(group().own_doorbell(), *context_->waiter, until,
                                       context_->wait_policy, done, [&] { look_after_peers(); });
  };
  auto until = transport::Clock::now() + deadline;
  while (!done_by(until)) {
    const auto lock = context_->drive();
    take_up();  // it may not have begun
    look_after_peers();
    if (is_complete(number) || has_failed()) break;
    until = last_moved_ + deadline;
    if (until <= transport::Clock::now()) stall(deadline);
  }
  return is_complete(number) ? Status{} : failure_;
}

// The thread sleeps on the bell and the sockets, looks after the peers, and tells what it has done.
template <class Done>
bool CommunicatorState::wait_beside_progress_thread(transport::Clock::time_point until,
                                                    const Done& done) {
  transport::Waiter on_futex;
  for (int i = 0; i < context_->wait_policy.yields; ++i) {
    if (done()) return true;
    transport::yield();
  }
  context_->progress->wake();
  return transport::wait_until(context_->completion, on_futex, until, {.spins = 0, .yields = 0},
                               done, [] {});
}

Status CommunicatorState::settle() {
  if (!context_->progress) return {};
  for (CommunicatorState* each : context_->communicators) {
    if (each->is_complete(each->issued_)) continue;
    if (Status status = each->wait(each->issued_, each->deadline_); !status.ok()) return status;
  }
  return {};
}

std::string CommunicatorState::who_where() {
  const Request& request = head().request;
  const Rank missing = running().waits_for();
  return base::format("{} #{}, rank {}, at step {} of {}{}", name(request.collective),
                      request.number, group().rank(), running().step(), running().steps(),
                      missing == kOwn ? "" : base::format(", waiting for rank {}", missing));
}

// What a peer says that it calls; nothing while it is writing that down.
std::optional<Request> CommunicatorState::request_of(Rank peer) const {
  const transport::StatusBoard& board = group().board(peer);
  const Request request = unpacked(board.entered.load(std::memory_order_acquire),
                                   board.kind.load(std::memory_order_relaxed),
                                   board.count.load(std::memory_order_relaxed));
  if (signature_of(request) != board.signature.load(std::memory_order_relaxed)) return std::nullopt;
  return request;
}

// Looks for a rank that is in the same collective by number but means another one.
void CommunicatorState::fail_if_mismatched() {
  for (Rank peer = 0; peer < group().size(); ++peer) {
    const std::optional<Request> theirs = request_of(peer);
    if (!theirs || theirs->number != head().request.number) continue;
    if (signature_of(*theirs) != head().signature) return fail_mismatched(peer);
  }
}

void CommunicatorState::fail_mismatched(Rank peer) {
  const Request& request = head().request;
  const std::optional<Request> theirs = request_of(peer);
  std::string calls = theirs ? describe(*theirs) : "another collective";
  if (theirs && theirs->number != request.number)
    calls += base::format(" as its collective #{}", theirs->number);
  fail({Code::Mismatch,
        base::format("{} #{}, rank {}: it calls {}, but rank {} calls {}; all ranks must call the "
                     "same in the same order",
                     name(request.collective), request.number, group().rank(), describe(request),
                     peer, calls)},
       peer, group().board(peer).entered.load(std::memory_order_acquire));
}

void CommunicatorState::note_moves() {
  const std::uint64_t moved = running().moved();
  if (std::exchange(moved_, moved) != moved) last_moved_ = transport::Clock::now();
}

void CommunicatorState::look_after_peers() {
  constexpr auto kOnItsWay = std::chrono::seconds{1};
  watch_.look();
  advance();
  if (is_idle() || has_failed()) return;
  note_moves();
  group().own_board().step.store(running().step(), std::memory_order_relaxed);
  tell_wait(running().waits_for());
  fail_if_mismatched();
  const bool moves = transport::Clock::now() - last_moved_ < kOnItsWay;
  const std::optional<Blame> blame = watch_.loss(running(), moves);
  if (!blame || has_failed()) return;
  if (blame->mismatched) {
    fail_mismatched(blame->culprit);
  } else {
    fail({Code::PeerLost, base::format("{}: {}", who_where(), blame->how)}, blame->culprit);
  }
}

// Whom the present collective waits for, on the board; kOwn: for nobody any more.
void CommunicatorState::tell_wait(Rank whom) {
  constexpr auto kBetweenNotes = std::chrono::milliseconds{250};
  std::atomic<std::int32_t>& told = group().own_board().waits_for;
  const bool changed = told.exchange(whom + 1, std::memory_order_relaxed) != whom + 1;
  told_wait_ = whom != kOwn;
  const auto now = transport::Clock::now();
  if (!changed && now - last_told_ < kBetweenNotes) return;
  last_told_ = now;
  group().publish_status();
}

void CommunicatorState::stall(std::chrono::milliseconds waited) {
  const Blame blame = watch_.standstill(running());
  if (blame.mismatched) return fail_mismatched(blame.culprit);
  fail(
      {Code::DeadlineExceeded, base::format("{}: no data for {:.3g} s; {}", who_where(),
                                            static_cast<double>(waited.count()) / 1000, blame.how)},
      blame.culprit);
}

}  // namespace sluice::engine
