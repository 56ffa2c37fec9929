#include "engine/verdict_handover.h"

#include <optional>

#include "base/format.h"
#include "engine/proofs.h"

namespace sluice::engine {
namespace {

constexpr std::byte kProven{1};
constexpr std::byte kNotProven{0};

Rank lowest_bit(Rank rank) { return rank & -rank; }

}  // namespace

void VerdictHandover::begin(const Request& request) {
  request_ = request;
  verdict_ = {};
  child_ = next_child(0);
  ++moves_;
  const transport::Group& group = endpoint_.group();
  const Rank rank = group.rank();
  known_ = false;
  parent_ = rank == 0 ? kOwn : rank - lowest_bit(rank);
  if (rank != 0) return;
  if (const std::optional<Status> verdict =
          Proofs::of_process().known_verdict(*request.algorithm, *request.first_use)) {
    verdict_ = *verdict;
    return;
  }
  proving_.store(true, std::memory_order_release);
  group.own_board().step.store(transport::kProvingStep, std::memory_order_release);
  group.publish_status();
  prover_ = std::jthread{[this, algorithm = *request.algorithm, shape = *request.first_use] {
    verdict_ = Proofs::of_process().verdict_on(algorithm, shape);
    proving_.store(false, std::memory_order_release);
    endpoint_.group().own_board().step.store(0, std::memory_order_release);
    endpoint_.group().ring(endpoint_.group().rank());
  }};
}

// The child after a child; 0 stands for the begin. The children of rank r are r + 1, r + 2, r + 4,
// ..., below r + its lowest set bit.
Rank VerdictHandover::next_child(Rank child) const {
  const Rank rank = endpoint_.group().rank();
  const Rank next = child == 0 ? rank + 1 : rank + 2 * (child - rank);
  const bool is_child = rank == 0 || next - rank < lowest_bit(rank);
  return is_child && next < endpoint_.size() ? next : endpoint_.size();
}

// True once the parent's message has arrived, or at rank 0 once the proof has ended.
Result<bool> VerdictHandover::receive() {
  if (parent_ == kOwn) {
    if (proves()) return false;
    if (prover_.joinable()) {
      prover_.join();
      endpoint_.group().publish_status();
    }
    return true;
  }
  const auto refuse = [&] { return Status{Code::Mismatch, "a peer called another collective"}; };
  std::byte verdict{};
  if (endpoint_.is_remote(parent_)) {
    const transport::MessageHeader* const header = endpoint_.incoming(parent_);
    if (header == nullptr) return false;
    if (header->signature != request_.signature) return refuse();
    if (header->bytes != 1) {
      endpoint_.drop(parent_, base::format("it sent an invalid message: a verdict of {} bytes",
                                           header->bytes));
      return Status{Code::PeerLost, "a peer sent an invalid message"};
    }
    if (endpoint_.read(parent_, &verdict, 1) == 0) return false;
  } else {
    const transport::ChannelMessage* const message = endpoint_.oldest(parent_);
    if (message == nullptr) return false;
    if (message->signature != request_.signature) return refuse();
    verdict = static_cast<std::byte>(message->bytes);
    // A rank that found no proof has given up since.
    if (!endpoint_.take(parent_) && verdict == kProven)
      return Status{Code::PeerLost, base::format("rank {} has given up", parent_)};
  }
  if (verdict != kProven) {
    verdict_ = {Code::NotProven, base::format("rank 0 has no proof of {}, so it will not run",
                                              request_.algorithm->name)};
  }
  return true;
}

// Whether this rank has nothing more to do for a child.
bool VerdictHandover::is_sent_to(Rank child) const {
  return !endpoint_.is_remote(child) || endpoint_.taken_by(child) == endpoint_.posted(child);
}

Result<bool> VerdictHandover::advance() {
  if (!known_) {
    Result<bool> received = receive();
    if (!received.ok() || !received.value()) return received;
    known_ = true;
    ++moves_;
  }
  message_ = verdict_.ok() ? kProven : kNotProven;
  for (; child_ < endpoint_.size(); child_ = next_child(child_)) {
    if (!endpoint_.can_post(child_)) return false;
    if (endpoint_.is_remote(child_)) {
      endpoint_.send(child_, header_of(request_, 1), &message_);
    } else {
      endpoint_.post(child_, {request_.signature,
                              {},
                              std::to_integer<std::uint64_t>(message_),
                              transport::Delivery::Staged});
    }
    ++moves_;
  }
  if (unsent_child() != endpoint_.size()) return false;
  if (!verdict_.ok()) return verdict_;
  return true;
}

// The first child that has not taken its message; group size: none.
Rank VerdictHandover::unsent_child() const {
  Rank child = next_child(0);
  while (child < child_ && is_sent_to(child)) child = next_child(child);
  return child;
}

Rank VerdictHandover::waits_for() const {
  if (!known_) return parent_;
  const Rank child = unsent_child();
  return child < endpoint_.size() ? child : kOwn;
}

bool VerdictHandover::is_being_proven() const {
  if (known_) return false;
  if (parent_ == kOwn) return proves();
  const transport::Group& group = endpoint_.group();
  const transport::StatusBoard& board = group.board(0);
  return board.entered.load(std::memory_order_acquire) == request_.number &&
         board.step.load(std::memory_order_acquire) == transport::kProvingStep &&
         group.stall_of(0).empty();
}

}  // namespace sluice::engine
