// communicator_failure.cc - how a communicator notices that it cannot go on, and fails.
//
// check_peers() runs about ten times a second while a rank waits, fail_stalled() at the deadline,
// and fail_running() when an execution returns an error. Each asks the FailureDetector for the
// culprit and then calls fail(), which poisons the communicator: every later call returns this
// first cause.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "engine/communicator_state.h"

namespace sluice::engine {

// Fails the communicator with the cause of an execution's error.
void CommunicatorState::fail_running(const Status& status) {
  const bool differs = status.code() == Code::Mismatch;
  const bool mismatched = differs && record_call_of(running().mismatched_peer());
  detector_.update();  // a peer that gave up may have reported another call
  fail_if_mismatched();
  if (has_failed()) return;
  if (mismatched) return fail_mismatched(running().mismatched_peer());
  if (!differs && status.code() != Code::PeerLost)
    return fail({status.code(), base::format("{}: {}", describe_position(), status.message())},
                kOwn);
  const Blame blame = detector_.cause_of_stall(running());
  if (blame.mismatched) return fail_mismatched(blame.culprit);
  fail_by({Code::PeerLost, base::format("{}: {}", describe_position(), blame.how)}, blame);
}

void CommunicatorState::fail(Status status, Rank culprit, std::uint64_t culprits_collective) {
  const bool mismatched = status.code() == Code::Mismatch;
  poison(std::move(status), culprit, mismatched ? transport::kMismatched : transport::kFailed,
         culprits_collective);
}

void CommunicatorState::fail_by(Status status, const Blame& blame) {
  if (has_failed()) return;
  poison(std::move(status), blame.culprit, blame.lost ? transport::kLost : transport::kFailed, 0);
  if (blame.lost) fail_others_with(blame.culprit);
}

// A lost rank fails all communicators that it is a member of, before this rank leaves one of them:
// a peer that still uses another one would take this rank for the first that is lost.
void CommunicatorState::fail_others_with(Rank culprit) {
  const transport::RankLocation& lost = group().location(culprit);
  for (CommunicatorState* const other : context_->communicators) {
    const transport::Group& ranks = other->group();
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      const transport::RankLocation& location = ranks.location(rank);
      if (location.node != lost.node || location.local != lost.local) continue;
      other->poison(
          {Code::PeerLost, base::format("rank {} is lost, which failed another communicator ({})",
                                        rank, failure_.message())},
          rank, transport::kLost, 0);
    }
  }
}

// Poisons the communicator. The order matters. The status board names the culprit before the peers
// can see that this rank gave up, so that they blame the same rank. All this happens before the
// caller gets its memory back.
void CommunicatorState::poison(Status status, Rank culprit, std::uint32_t how,
                               std::uint64_t culprits_collective) {
  if (has_failed()) return;
  transport::StatusBoard& own = group().own_board();
  own.waits_for.store(0, std::memory_order_relaxed);
  own.blamed.store(culprit + 1, std::memory_order_relaxed);
  own.blamed_in.store(culprits_collective, std::memory_order_relaxed);
  own.failed.store(how, std::memory_order_seq_cst);
  endpoint_.withdraw();
  failure_ = std::move(status);
  failed_.store(true, std::memory_order_release);
  for (Rank peer = 0; peer < group().size(); ++peer) {
    if (peer != group().rank() && group().is_local(peer)) group().ring(peer);
  }
  group().publish_status();
  if (culprit != kOwn)
    context_->launcher.send({.rank = group().location(group().rank()).in_job,
                             .culprit = group().location(culprit).in_job,
                             .message = failure_.message()});
  context_->notify();
}

std::string CommunicatorState::describe_position() {
  const Request& request = head();
  const Rank missing = running().waits_for();
  const int step = running().step();
  return base::format("{} #{}, rank {}, {}{}", name(request.collective), request.number,
                      group().rank(),
                      step == transport::kProvingStep ? "before step 1, proving the schedule"
                      : handing_over_                 ? "before step 1"
                                      : base::format("at step {} of {}", step, running().steps()),
                      missing == kOwn ? "" : base::format(", waiting for rank {}", missing));
}

// The peer's present call, from its status board. nullopt while the peer is writing it, and for a
// call that no rank can make.
std::optional<Request> CommunicatorState::call_of(Rank peer) const {
  const transport::StatusBoard& board = group().board(peer);
  const Call call{.number = board.entered.load(std::memory_order_acquire),
                  .kind = board.kind.load(std::memory_order_relaxed),
                  .count = board.count.load(std::memory_order_relaxed)};
  if (signature_of(call) != board.signature.load(std::memory_order_relaxed)) return std::nullopt;
  return unpacked(call, group().size());
}

// Updates this rank's copy of a remote peer's status board from the peer's message, if the message
// is newer. False: no rank can make the call of that message, and the peer's connection was ended.
bool CommunicatorState::record_call_of(Rank peer) {
  if (!endpoint_.is_remote(peer)) return true;
  const transport::MessageHeader header = *endpoint_.incoming(peer);
  const Call call{header.number, header.kind, header.count};
  if (!unpacked(call, group().size()) || signature_of(call) != header.signature) {
    endpoint_.drop(peer, "it sent an invalid message: there is no such collective");
    return false;
  }
  transport::StatusBoard& board = group().board(peer);
  transport::StatusUpdate update = board.read();
  if (header.number < update.entered) return true;
  update.entered = header.number;
  update.kind = header.kind;
  update.count = header.count;
  update.signature = header.signature;
  board.write(update);
  return true;
}

// Fails if a rank's call with the same number is a different collective.
void CommunicatorState::fail_if_mismatched() {
  for (Rank peer = 0; peer < group().size(); ++peer) {
    if (is_mismatched(peer)) return fail_mismatched(peer);
  }
}

bool CommunicatorState::is_mismatched(Rank peer) const {
  const std::optional<Request> theirs = call_of(peer);
  return theirs && theirs->number == head().number && theirs->signature != head().signature;
}

void CommunicatorState::fail_mismatched(Rank peer) {
  const Request& request = head();
  const std::optional<Request> theirs = call_of(peer);
  std::string calls = theirs ? describe(*theirs) : "another collective";
  if (theirs && theirs->number != request.number)
    calls += base::format(" as its collective #{}", theirs->number);
  fail({Code::Mismatch,
        base::format("{} #{}, rank {}: it calls {}, but rank {} calls {}; all ranks must make the "
                     "same calls in the same order",
                     name(request.collective), request.number, group().rank(), describe(request),
                     peer, calls)},
       peer, group().board(peer).entered.load(std::memory_order_acquire));
}

// Looking at every rank takes longer the more ranks there are, so many ranks of a node do it less
// often. In between, a rank looks at the one that it waits for, and at all if something is wrong
// with that one. A rank that fails names the culprit, which so gets from rank to rank.
bool CommunicatorState::must_look_at_all_peers() {
  constexpr auto kForEachRank = std::chrono::milliseconds{2};
  const auto now = transport::Clock::now();
  if (!endpoint_.has_network() && now - last_look_ < kForEachRank * group().size()) {
    const Rank peer = begun_ ? running().waits_for() : kOwn;
    if (peer == kOwn) return false;
    group().watch(peer);
    if (detector_.is_alive(peer) && !is_mismatched(peer)) return false;
  }
  last_look_ = now;
  return true;
}

void CommunicatorState::check_peers() {
  // Data of a peer that gave up may still be in flight for this long after the last move.
  constexpr auto kInFlight = std::chrono::seconds{1};
  const bool look = must_look_at_all_peers();
  if (look) detector_.update();
  advance();
  if (is_idle() || has_failed()) return;
  const std::uint64_t moved = running().moved();
  const bool has_moved = std::exchange(moved_, moved) != moved;
  if (has_moved || (handing_over_ && handover_.is_being_proven()))
    last_moved_ = transport::Clock::now();
  group().own_board().step.store(running().step(), std::memory_order_relaxed);
  report_waiting(running().waits_for());
  if (!look) return;
  fail_if_mismatched();
  const bool moves = transport::Clock::now() - last_moved_ < kInFlight;
  const std::optional<Blame> blame = detector_.cause_of_loss(running(), moves);
  if (!blame || has_failed()) return;
  if (blame->mismatched) return fail_mismatched(blame->culprit);
  fail_by({Code::PeerLost, base::format("{}: {}", describe_position(), blame->how)}, *blame);
}

namespace {

// A split waits for ranks as a collective does.
class SplitOfRanks final : public RunningCollective {
 public:
  explicit SplitOfRanks(const std::vector<Rank>& members) : members_{members} {}
  void begin(const Request& /*request*/) override {}
  Result<bool> advance() override { return false; }
  std::uint64_t moved() const override { return 0; }
  int step() const override { return 1; }
  int steps() const override { return 1; }
  Rank waits_for() const override { return kOwn; }
  Rank mismatched_peer() const override { return kOwn; }
  bool needs(Rank peer) const override {
    return std::find(members_.begin(), members_.end(), peer) != members_.end();
  }

 private:
  const std::vector<Rank>& members_;
};

}  // namespace

Result<std::unique_ptr<transport::Network>> CommunicatorState::split_network(
    const std::vector<Rank>& members, std::uint64_t id) {
  const auto lock = context_->lock();
  const SplitOfRanks split{members};
  Rank waits_for = kOwn;
  const auto fail_if_lost = [&] {
    detector_.update();
    if (const std::optional<Blame> blame = detector_.cause_of_loss(split, false))
      fail_by({Code::PeerLost, base::format("split, rank {}: {}", group().rank(), blame->how)},
              *blame);
    return failure();
  };
  const auto check = [&](Rank missing) {
    waits_for = members[static_cast<std::size_t>(missing)];
    report_waiting(waits_for);
    return fail_if_lost();
  };
  auto network =
      group().network()->split(members, id, {transport::Clock::now() + deadline_, check});
  report_waiting(kOwn);
  if (network.ok()) return network;
  if (fail_if_lost().ok()) fail(network.status(), waits_for);
  return failure();
}

// Writes to the status board which peer the present collective waits for; kOwn: none.
void CommunicatorState::report_waiting(Rank peer) {
  constexpr auto kBetweenReports = std::chrono::milliseconds{250};
  std::atomic<std::int32_t>& reported = group().own_board().waits_for;
  const bool changed = reported.exchange(peer + 1, std::memory_order_relaxed) != peer + 1;
  reported_waiting_ = peer != kOwn;
  const auto now = transport::Clock::now();
  if (!changed && now - last_report_ < kBetweenReports) return;
  last_report_ = now;
  group().publish_status();
}

void CommunicatorState::fail_stalled(std::chrono::milliseconds waited) {
  detector_.update();
  const Blame blame = detector_.cause_of_stall(running());
  if (blame.mismatched) return fail_mismatched(blame.culprit);
  const double seconds = static_cast<double>(waited.count()) / 1000;
  fail_by({Code::DeadlineExceeded,
           base::format("{}: no data for {:.3g} s; {}", describe_position(), seconds, blame.how)},
          blame);
}

}  // namespace sluice::engine
