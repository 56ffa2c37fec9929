#include "engine/verdict_handover.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "algorithms/schedule_file.h"
#include "base/format.h"
#include "engine/select/choices.h"
#include "schedule/marks.h"

namespace sluice::engine {
namespace {

// A message is 8 bytes, twice the length of the rest plus 1 for yes, and the rest. Of a yes the
// rest is the file's hash in a report, and its marks in a verdict. Of a no it is kUnusable or
// kNotProven, and a sentence.
constexpr std::size_t kHeaderBytes = sizeof(std::uint64_t);
constexpr std::size_t kMostSentence = 4096;
constexpr char kUnusable = 'u';
constexpr char kNotProven = 'n';

std::string bytes_of(std::uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

std::uint64_t number_at(const std::string& bytes, std::size_t at) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

std::string message_of(const Verdict& verdict) {
  std::string rest;
  if (verdict.ok()) {
    rest = verdict.value();
  } else {
    rest = verdict.status().code() == Code::NotProven ? kNotProven : kUnusable;
    rest += std::string_view{verdict.status().message()}.substr(0, kMostSentence);
  }
  return bytes_of(2 * rest.size() + (verdict.ok() ? 1 : 0)) + rest;
}

Verdict verdict_in(const std::string& message) {
  const std::string rest = message.substr(kHeaderBytes);
  if ((number_at(message, 0) & 1U) != 0) return rest;
  if (rest.empty()) return Status{Code::NotProven, "a peer gave no reason"};
  const bool unusable = rest.front() == kUnusable;
  return Status{unusable ? Code::InvalidInput : Code::NotProven, rest.substr(1)};
}

Rank lowest_bit(Rank rank) { return rank & -rank; }

Status mismatch() { return {Code::Mismatch, "a peer called another collective"}; }

}  // namespace

void VerdictHandover::begin(const Request& request) {
  request_ = request;
  verdict_ = Verdict{std::string{}};
  child_ = next_child(0);
  posted_ = 0;
  arrived_ = 0;
  incoming_.clear();
  ++moves_;
  const Rank rank = endpoint_.group().rank();
  parent_ = rank == 0 ? kOwn : rank - lowest_bit(rank);
  phase_ = uses_file() ? Phase::Gather : Phase::Receive;
  trouble_ = request.choice->refusal;
  if (!trouble_.ok())
    trouble_ = {Code::InvalidInput, base::format("rank {}: {}", rank, trouble_.message())};
  if (rank == 0 && !uses_file()) begin_proof();
}

// REQUIRES: this is rank 0.
void VerdictHandover::begin_proof() {
  const transport::Group& group = endpoint_.group();
  const Choice& choice = *request_.choice;
  if (const std::optional<Verdict> verdict =
          Proofs::of_process().known_verdict(*choice.algorithm, choice.shape)) {
    verdict_ = *verdict;
    return;
  }
  proving_.store(true, std::memory_order_release);
  group.own_board().step.store(transport::kProvingStep, std::memory_order_release);
  group.publish_status();
  prover_ = std::jthread{[this, algorithm = *choice.algorithm, shape = choice.shape] {
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

// Posts what the window has room for. True when the whole message is posted.
Result<bool> VerdictHandover::post_message(Rank peer) {
  if (!endpoint_.can_post(peer)) return false;
  if (endpoint_.is_remote(peer)) {
    endpoint_.send(peer, header_of(request_, outgoing_.size()),
                   reinterpret_cast<const std::byte*>(outgoing_.data()));
  } else if (outgoing_.size() == kHeaderBytes) {
    // It needs no memory: the message without a location carries the header as its length.
    endpoint_.post(peer,
                   {request_.signature, {}, number_at(outgoing_, 0), transport::Delivery::Staged});
  } else {
    for (; posted_ < outgoing_.size(); ++moves_) {
      if (!endpoint_.can_post(peer)) return false;
      const Result<Endpoint::Staging> staging = endpoint_.staging(peer);
      if (!staging.ok()) return staging.status();
      const std::size_t bytes = std::min(outgoing_.size() - posted_, Endpoint::kStagedBytes);
      std::memcpy(staging.value().data, outgoing_.data() + posted_, bytes);
      endpoint_.post(
          peer, {request_.signature, staging.value().location, bytes, transport::Delivery::Staged});
      posted_ += bytes;
    }
  }
  posted_ = 0;
  ++moves_;
  return true;
}

// The longest message that a peer may send in this phase.
std::size_t VerdictHandover::most_bytes() const {
  const std::size_t marks =
      uses_file() ? schedule::packed_bytes(request_.algorithm->file->schedule) : 0;
  return kHeaderBytes + std::max({marks, kMostSentence + 1, sizeof(std::uint64_t)});
}

// True when `incoming_` is the whole message of the peer.
Result<bool> VerdictHandover::receive_message(Rank peer) {
  if (!endpoint_.is_remote(peer)) return receive_local(peer);
  if (arrived_ == 0) {
    const transport::MessageHeader* const header = endpoint_.incoming(peer);
    if (header == nullptr) return false;
    if (header->signature != request_.signature) return mismatch();
    if (header->bytes < kHeaderBytes || header->bytes > most_bytes()) {
      endpoint_.drop(
          peer, base::format("it sent an invalid message: a verdict of {} bytes", header->bytes));
      return Status{Code::PeerLost, "a peer sent an invalid message"};
    }
    incoming_.resize(header->bytes);
  }
  while (arrived_ < incoming_.size()) {
    const std::uint64_t read =
        endpoint_.read(peer, reinterpret_cast<std::byte*>(incoming_.data()) + arrived_,
                       incoming_.size() - arrived_);
    if (read == 0) return false;
    arrived_ += read;
    ++moves_;
  }
  arrived_ = 0;
  return true;
}

Result<bool> VerdictHandover::receive_local(Rank peer) {
  const auto is_whole = [&] {
    return incoming_.size() >= kHeaderBytes &&
           incoming_.size() >= kHeaderBytes + number_at(incoming_, 0) / 2;
  };
  if (arrived_ == 0) incoming_.clear();
  while (!is_whole()) {
    const transport::ChannelMessage* const message = endpoint_.oldest(peer);
    if (message == nullptr) return false;
    if (message->signature != request_.signature) return mismatch();
    if (message->location.block == 0) {
      incoming_ = bytes_of(message->bytes);
    } else {
      const Result<std::byte*> address = endpoint_.group().address(peer, message->location);
      if (!address.ok()) return address.status();
      incoming_.append(reinterpret_cast<const char*>(address.value()), message->bytes);
    }
    arrived_ = incoming_.size();
    ++moves_;
    // A rank that found no proof has given up since; its sentence stays as it is.
    const bool is_no = incoming_.size() >= kHeaderBytes && (number_at(incoming_, 0) & 1U) == 0;
    if (!endpoint_.take(peer) && !(is_no && is_whole()))
      return Status{Code::PeerLost, base::format("rank {} has given up", peer)};
  }
  arrived_ = 0;
  return true;
}

// Keeps the first trouble that a rank below has reported, or has with this rank's file.
void VerdictHandover::check_report(Rank child) {
  const Verdict report = verdict_in(incoming_);
  if (!trouble_.ok()) return;
  if (!report.ok()) {
    trouble_ = report.status();
  } else if (report.value() != bytes_of(request_.algorithm->file->hash)) {
    trouble_ = {Code::InvalidInput,
                base::format("{} of rank {} differs from that of rank {}: give all ranks the same "
                             "file",
                             request_.algorithm->name, child, endpoint_.group().rank())};
  }
}

// True when all children have reported.
Result<bool> VerdictHandover::gather() {
  for (; child_ < endpoint_.size(); child_ = next_child(child_)) {
    Result<bool> received = receive_message(child_);
    if (!received.ok() || !received.value()) return received;
    check_report(child_);
  }
  outgoing_ = message_of(trouble_.ok() ? Verdict{bytes_of(request_.algorithm->file->hash)}
                                       : Verdict{trouble_});
  if (parent_ == kOwn && trouble_.ok()) begin_proof();
  if (parent_ == kOwn && !trouble_.ok()) verdict_ = trouble_;
  return true;
}

// True once the parent's message has arrived, or at rank 0 once the proof has ended.
Result<bool> VerdictHandover::receive() {
  if (parent_ == kOwn) {
    if (proves()) return false;
    if (prover_.joinable()) {
      prover_.join();
      endpoint_.group().publish_status();
    }
  } else {
    const bool reported =
        !endpoint_.is_remote(parent_) || endpoint_.taken_by(parent_) == endpoint_.posted(parent_);
    if (!reported) return false;  // outgoing_ is still in use
    Result<bool> received = receive_message(parent_);
    if (!received.ok() || !received.value()) return received;
    verdict_ = verdict_in(incoming_);
    const bool fits =
        !verdict_.ok() || !uses_file() ||
        verdict_.value().size() == schedule::packed_bytes(request_.algorithm->file->schedule);
    if (!fits) return Status{Code::PeerLost, "a peer sent an invalid message"};
  }
  outgoing_ = message_of(verdict_);
  child_ = next_child(0);
  return true;
}

// True when all children have the verdict.
Result<bool> VerdictHandover::pass_on() {
  for (; child_ < endpoint_.size(); child_ = next_child(child_)) {
    Result<bool> posted = post_message(child_);
    if (!posted.ok() || !posted.value()) return posted;
  }
  return unsent_child() == endpoint_.size();
}

Result<bool> VerdictHandover::advance_phase() {
  switch (phase_) {
    case Phase::Gather:
      return gather();
    case Phase::Report:
      return parent_ == kOwn ? Result<bool>{true} : post_message(parent_);
    case Phase::Receive:
      return receive();
    case Phase::PassOn:
      break;
  }
  return pass_on();
}

Result<bool> VerdictHandover::advance() {
  while (true) {
    Result<bool> done = advance_phase();
    if (!done.ok() || !done.value()) return done;
    if (phase_ == Phase::PassOn) break;
    phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
    ++moves_;
  }
  if (!verdict_.ok()) return verdict_.status();
  return true;
}

// Whether this rank has nothing more to do for a child.
bool VerdictHandover::is_sent_to(Rank child) const {
  return !endpoint_.is_remote(child) || endpoint_.taken_by(child) == endpoint_.posted(child);
}

// The first child that has not taken its message; group size: none.
Rank VerdictHandover::unsent_child() const {
  Rank child = next_child(0);
  while (child < child_ && is_sent_to(child)) child = next_child(child);
  return child;
}

Rank VerdictHandover::waits_for() const {
  switch (phase_) {
    case Phase::Gather:
      return child_ < endpoint_.size() ? child_ : kOwn;
    case Phase::Report:
    case Phase::Receive:
      return parent_;
    case Phase::PassOn:
      break;
  }
  const Rank child = unsent_child();
  return child < endpoint_.size() ? child : kOwn;
}

bool VerdictHandover::is_being_proven() const {
  if (phase_ == Phase::PassOn) return false;
  if (parent_ == kOwn) return proves();
  const transport::Group& group = endpoint_.group();
  const transport::StatusBoard& board = group.board(0);
  return board.entered.load(std::memory_order_acquire) == request_.number &&
         board.step.load(std::memory_order_acquire) == transport::kProvingStep &&
         group.stall_of(0).empty();
}

}  // namespace sluice::engine
