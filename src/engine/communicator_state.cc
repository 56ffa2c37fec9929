#include "engine/communicator_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::detail {

PoolState::PoolState(std::shared_ptr<CommunicatorState> communicator, Segment segment)
    : communicator_{std::move(communicator)}, segment_{segment} {}

PoolState::~PoolState() { communicator_->release(segment_); }

CommunicatorState::CommunicatorState(std::unique_ptr<Group> group,
                                     std::shared_ptr<RankContext> context)
    : context_{std::move(context)},
      endpoint_{std::move(group)},
      execution_{endpoint_},
      eager_{endpoint_} {
  context_->communicators.push_back(this);
}

CommunicatorState::~CommunicatorState() { std::erase(context_->communicators, this); }

Result<Segment> CommunicatorState::allocate(std::size_t bytes) {
  Result<Segment> segment = group().memory().allocate(bytes);
  if (segment.ok()) segments_.push_back(segment.value());
  return segment;
}

void CommunicatorState::release(const Segment& segment) {
  std::erase_if(segments_, [&](const Segment& each) { return each.id == segment.id; });
  group().memory().release(segment);
}

Location CommunicatorState::location_of(const std::byte* data, std::size_t bytes) const {
  for (const Segment& segment : segments_) {
    const bool inside = !std::less<>{}(data, segment.data) &&
                        !std::less<>{}(segment.data + segment.bytes, data + bytes);
    if (inside) return {segment.id, static_cast<std::uint64_t>(data - segment.data)};
  }
  return {};
}

const Algorithm& CommunicatorState::choose(Collective collective, std::size_t bytes,
                                           const CollectiveOptions& options) const {
  if (!options.algorithm.empty()) return *find_algorithm(options.algorithm).value();
  const bool small = collective == Collective::AllReduce && bytes <= kSlotBytes;
  return *find_algorithm(small ? "exchange" : "direct").value();
}

Result<std::uint64_t> CommunicatorState::issue(Collective collective, void* data, std::size_t count,
                                               const CollectiveOptions& options) {
  if (!failure_.ok()) return failure_;
  const std::size_t bytes = count * size_of(options.type);
  const Algorithm& algorithm = choose(collective, bytes, options);
  const Result<Shape> shape = complete_shape(
      algorithm, {.collective = collective, .ranks = group().size(), .root = options.root});
  if (!shape.ok()) return shape.status();
  Result<std::shared_ptr<const Plan>> plan = proven_plan(algorithm, shape.value(), group().rank());
  if (!plan.ok()) return plan.status();

  Pending pending;
  pending.request = {
      ++issued_,  collective,         options.type,
      options.op, shape.value().root, static_cast<std::uint8_t>(&algorithm - algorithms().data()),
      count};
  pending.signature = signature_of(pending.request);
  pending.plan = plan.value();
  pending.eager = algorithm.name == "exchange" && bytes <= kSlotBytes;
  pending.data = static_cast<std::byte*>(data);
  pending.location = location_of(pending.data, bytes);
  queue_.push_back(std::move(pending));
  advance();
  return issued_;
}

void CommunicatorState::begin_next() {
  const Pending& next = queue_.front();
  RankBoard& board = group().own_board();
  board.kind.store(packed_kind(next.request), std::memory_order_relaxed);
  board.count.store(next.request.count, std::memory_order_relaxed);
  board.step.store(0, std::memory_order_relaxed);
  board.waits_for.store(0, std::memory_order_relaxed);
  board.entered.store(next.request.number, std::memory_order_release);
  if (next.eager) {
    eager_.begin(next.request, next.signature, next.data);
  } else {
    execution_.begin(next.plan, next.request, next.signature, next.data, next.location);
  }
  begun_ = true;
}

void CommunicatorState::advance() {
  while (failure_.ok() && !queue_.empty()) {
    if (!begun_) begin_next();
    const Pending& head = queue_.front();
    const Result<bool> done = head.eager ? eager_.advance() : execution_.advance();
    if (!done.ok()) {
      const Status differs = mismatch_with_any(head.request);
      return fail(differs.ok() ? done.status() : differs);
    }
    if (!done.value()) return;
    completed_ = head.request.number;
    begun_ = false;
    queue_.pop_front();
  }
}

void CommunicatorState::advance_all() {
  for (CommunicatorState* communicator : context_->communicators) communicator->advance();
}

void CommunicatorState::fail(Status status) {
  if (!failure_.ok()) return;
  failure_ = std::move(status);
  group().own_board().failed.store(1, std::memory_order_seq_cst);
  for (Rank peer = 0; peer < group().size(); ++peer) {
    if (peer != group().rank()) ring(group().bell(peer));
  }
}

Status CommunicatorState::wait(std::uint64_t number, std::chrono::milliseconds deadline) {
  const auto until = Clock::now() + deadline;
  const auto done = [&] {
    advance_all();
    return is_complete(number) || !failure_.ok();
  };
  if (!wait_until(group().bell(group().rank()), until, done, [&] { look_after_peers(); })) {
    fail(stalled(deadline));
  }
  return is_complete(number) ? Status{} : failure_;
}

std::string CommunicatorState::who_where() const {
  const Request& request = queue_.front().request;
  return fmt::format("{} #{}, rank {}", name(request.collective), request.number, group().rank());
}

// A rank that is in the same collective by number but means another one.
Status CommunicatorState::mismatch_with_any(const Request& request) const {
  for (Rank peer = 0; peer < group().size(); ++peer) {
    const RankBoard& board = group().board(peer);
    if (board.entered.load(std::memory_order_acquire) != request.number) continue;
    const Request theirs = unpacked(request.number, board.kind.load(std::memory_order_relaxed),
                                    board.count.load(std::memory_order_relaxed));
    if (board.entered.load(std::memory_order_acquire) != request.number) continue;
    if (signature_of(theirs) == signature_of(request)) continue;
    return {Code::Mismatch,
            fmt::format("{}: it calls {}, but rank {} calls {}; all ranks must call the same",
                        who_where(), describe(request), peer, describe(theirs))};
  }
  return {};
}

void CommunicatorState::look_after_peers() {
  // Whom we lack is asked after who has gone: what a rank gave before it left is then seen.
  const Rank gone = first_gone();
  advance();
  if (queue_.empty() || !failure_.ok()) return;
  const Request& request = queue_.front().request;
  const Rank missing = queue_.front().eager ? eager_.waits_for() : execution_.waits_for();
  RankBoard& own = group().own_board();
  own.step.store(queue_.front().eager ? 1 : execution_.step(), std::memory_order_relaxed);
  own.waits_for.store(missing + 1, std::memory_order_relaxed);

  if (Status differs = mismatch_with_any(request); !differs.ok()) return fail(std::move(differs));
  if (missing == kOwn || gone == kOwn) return;
  const int step = own.step.load(std::memory_order_relaxed);
  const std::string death = group().death_of(gone);
  if (gone == missing) {
    fail({Code::PeerLost, fmt::format("{}: rank {} is lost ({}), at step {}", who_where(), gone,
                                      death.empty() ? "it gave up" : death, step)});
  } else if (group().board(missing).failed.load(std::memory_order_seq_cst) != 0) {
    fail({Code::PeerLost,
          fmt::format("{}: rank {} gave up at step {}; rank {} is lost ({})", who_where(), missing,
                      step, gone, death.empty() ? "it gave up first" : death)});
  }
}

// A rank that died or left, else one that gave up; kOwn: nobody.
Rank CommunicatorState::first_gone() const {
  Rank gave_up = kOwn;
  for (Rank peer = 0; peer < group().size(); ++peer) {
    if (peer == group().rank()) continue;
    if (!group().death_of(peer).empty()) return peer;
    if (group().board(peer).failed.load(std::memory_order_seq_cst) != 0) gave_up = peer;
  }
  return gave_up;
}

// The dead rank, else the one furthest behind that waits for nobody.
Rank CommunicatorState::culprit() const {
  Rank behind = kOwn;
  std::pair<std::uint64_t, int> least{~std::uint64_t{0}, 0};
  for (Rank peer = 0; peer < group().size(); ++peer) {
    if (peer == group().rank()) continue;
    if (!group().death_of(peer).empty()) return peer;
    const RankBoard& board = group().board(peer);
    if (board.waits_for.load(std::memory_order_relaxed) != 0) continue;
    const std::pair<std::uint64_t, int> place{board.entered.load(std::memory_order_relaxed),
                                              board.step.load(std::memory_order_relaxed)};
    if (behind == kOwn || place < least) {
      behind = peer;
      least = place;
    }
  }
  return behind;
}

Status CommunicatorState::stalled(std::chrono::milliseconds waited) {
  look_after_peers();
  if (!failure_.ok()) return failure_;
  const Rank blamed = culprit();
  const Rank missing = queue_.front().eager ? eager_.waits_for() : execution_.waits_for();
  const int step = queue_.front().eager ? 1 : execution_.step();
  std::string text = fmt::format("{}: no data from rank {} for {:.3g} s, at step {}", who_where(),
                                 missing, static_cast<double>(waited.count()) / 1000, step);
  if (blamed != kOwn) {
    text += fmt::format("; rank {} last reported collective #{}", blamed,
                        group().board(blamed).entered.load(std::memory_order_relaxed));
  }
  return {Code::DeadlineExceeded, std::move(text)};
}

}  // namespace sluice::detail
