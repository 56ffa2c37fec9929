#include "engine/execution.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "engine/select/choices.h"
#include "kernels/convert.h"

namespace sluice::engine {

void Execution::begin(const Request& request) {
  request_ = request;
  plan_ = request.choice->plan.get();
  element_ = size_of(request.type);
  mismatched_peer_ = kOwn;
  ++moves_;

  const auto instructions = plan_->instructions();
  const auto ranks = static_cast<std::size_t>(endpoint_.size());
  left_ = instructions.size();
  progress_.assign(instructions.size(), {});
  open_.clear();
  open_.reserve(instructions.size());  // the number of open instructions depends on timing
  for (std::uint32_t i = 0; i < instructions.size(); ++i) {
    progress_[i].waits = instructions[i].waits;
    if (instructions[i].waits == 0 && instructions[i].kind != Instruction::Kind::Send)
      open_.push_back(i);
  }
  next_send_.assign(ranks, 0);
  next_sent_done_.assign(ranks, 0);
  next_receive_.assign(ranks, 0);
  incoming_.assign(ranks, {});
  place_buffers();
  if (has_several_long_senders()) endpoint_.limit_receive_buffers();
}

// Whether long messages come from several ranks of other nodes.
bool Execution::has_several_long_senders() const {
  constexpr std::uint64_t kLong = 64 * 1024;
  if (!endpoint_.has_network() || request_.bytes() <= kLong) return false;
  int senders = 0;
  for (Rank peer = 0; peer < endpoint_.size(); ++peer)
    senders += endpoint_.is_remote(peer) && !plan_->receives_from(peer).empty() ? 1 : 0;
  const auto instructions = plan_->instructions();
  return senders > 1 &&
         std::any_of(instructions.begin(), instructions.end(), [&](const auto& each) {
           return each.kind == Instruction::Kind::Receive && bytes_of(each.range) > kLong;
         });
}

// The scratch buffers lie one after the other. With a number of chunks of its own, a buffer has as
// many chunks of the same size.
void Execution::place_buffers() {
  const auto chunkings = plan_->chunkings();
  const auto count = static_cast<std::int64_t>(request_.count);
  const int chunks = chunkings.front().chunks();
  buffers_.clear();
  std::uint64_t scratch = 0;
  most_bytes_ = 0;
  for (const Chunking& chunking : chunkings) {
    const bool alike = chunking.chunks() == chunks;
    buffers_.push_back({&chunking, alike ? count : count / chunks * chunking.chunks(), nullptr});
    const std::uint64_t bytes = static_cast<std::uint64_t>(buffers_.back().count) * element_;
    most_bytes_ = std::max(most_bytes_, bytes);
    if (buffers_.size() > 1) scratch += bytes;
  }
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  buffers_.front().data = request_.data;
  std::byte* next = scratch_.data();
  for (BufferPlace& each : std::span{buffers_}.subspan(1)) {
    each.data = next;
    next += static_cast<std::uint64_t>(each.count) * element_;
  }
}

std::uint64_t Execution::bytes_of(const Range& range) const {
  const Chunking& chunking = *buffer(range.buffer).chunking;
  const std::int64_t count = buffer(range.buffer).count;
  const int end = range.first + range.count;
  const auto to = [&](int chunk) { return chunking.begin(chunk, count); };
  const std::int64_t elements = end <= chunking.chunks()
                                    ? to(end) - to(range.first)
                                    : count - to(range.first) + to(end - chunking.chunks());
  return static_cast<std::uint64_t>(elements) * element_;
}

Execution::Piece Execution::piece(const Range& range, std::uint64_t bytes_in) const {
  const auto& [chunking_of, count, data] = buffer(range.buffer);
  const Chunking& chunking = *chunking_of;
  const auto to = [&, count = count](int chunk) {
    return static_cast<std::uint64_t>(chunking.begin(chunk, count)) * element_;
  };
  const int end = range.first + range.count;
  const std::uint64_t first_end = to(std::min(end, chunking.chunks()));
  const std::uint64_t first_bytes = first_end - to(range.first);
  if (bytes_in < first_bytes) {
    const std::uint64_t offset = to(range.first) + bytes_in;
    return {data + offset, offset, first_end - offset};
  }
  const std::uint64_t offset = bytes_in - first_bytes;  // the range wraps to the beginning
  const std::uint64_t wrapped = end > chunking.chunks() ? to(end - chunking.chunks()) : 0;
  return {data + offset, offset, wrapped - offset};
}

Result<bool> Execution::advance() {
  bool moved = true;
  while (moved && left_ > 0) {
    moved = false;
    for (Rank peer = 0; peer < endpoint_.size(); ++peer) {
      Result<bool> sent = advance_sends(peer);
      if (!sent.ok()) return sent.status();
      moved = moved || sent.value();
    }
    // Instructions that become open while others finish are appended, and reached in this loop.
    for (std::size_t i = 0; i < open_.size();) {
      const std::uint32_t index = open_[i];
      bool done = true;
      if (plan_->instructions()[index].kind == Instruction::Kind::Local) {
        run_local(index);
      } else {
        Result<bool> received = advance_receive(index);
        if (!received.ok()) return received.status();
        done = received.value();
      }
      if (done) {
        open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
        finish(index);
        moved = true;
      } else {
        ++i;
      }
    }
  }
  return left_ == 0;
}

void Execution::finish(std::uint32_t index) {
  progress_[index].done = true;
  --left_;
  ++moves_;
  for (const std::uint32_t follower : plan_->followers(plan_->instructions()[index])) {
    if (--progress_[follower].waits > 0) continue;
    if (plan_->instructions()[follower].kind != Instruction::Kind::Send) open_.push_back(follower);
  }
}

// Posts the next sends to the peer that may start, and finishes the sends that it has taken. True
// if anything moved.
Result<bool> Execution::advance_sends(Rank peer) {
  const auto p = static_cast<std::size_t>(peer);
  const auto sends = plan_->sends_to(peer);
  bool moved = false;
  while (next_send_[p] < sends.size()) {
    const std::uint32_t index = sends[next_send_[p]];
    const Instruction& send = plan_->instructions()[index];
    Progress& progress = progress_[index];
    if (progress.waits > 0) break;
    const std::uint64_t total = bytes_of(send.range);
    while (progress.bytes < total && endpoint_.can_post(peer)) {
      const Piece part = piece(send.range, progress.bytes);
      moved = true;
      ++moves_;
      if (endpoint_.is_remote(peer)) {
        endpoint_.send(peer, header_of(request_, part.bytes), part.data);
        progress.bytes += part.bytes;
        continue;
      }
      transport::ChannelMessage message{
          request_.signature, {}, part.bytes, transport::Delivery::InPlace};
      if (send.range.buffer == kUserBuffer && request_.location.block != 0) {
        message.location = request_.location;
        message.location.offset += part.offset;
      } else {
        Result<Endpoint::Staging> staging = endpoint_.staging(peer);
        if (!staging.ok()) return staging.status();
        message.bytes = std::min<std::uint64_t>(part.bytes, Endpoint::kStagedBytes);
        message.location = staging.value().location;
        message.delivery = transport::Delivery::Staged;
        sluice::kernels::copy(staging.value().data, part.data, message.bytes);
      }
      endpoint_.post(peer, message);
      progress.bytes += message.bytes;
    }
    if (progress.bytes < total) break;
    progress.posted_end = endpoint_.posted(peer);
    ++next_send_[p];
  }
  while (next_sent_done_[p] < next_send_[p]) {
    const std::uint32_t index = sends[next_sent_done_[p]];
    if (endpoint_.taken_by(peer) < progress_[index].posted_end) break;
    ++next_sent_done_[p];
    finish(index);
    moved = true;
  }
  return moved;
}

bool Execution::is_next(std::uint32_t receive, Rank peer) const {
  const auto p = static_cast<std::size_t>(peer);
  const auto receives = plan_->receives_from(peer);
  return next_receive_[p] < receives.size() && receives[next_receive_[p]] == receive;
}

// Checks that the next message from a rank of another node belongs to this collective. False: no
// message has arrived.
Result<bool> Execution::has_message_from(Rank remote) {
  const transport::MessageHeader* const header = endpoint_.incoming(remote);
  if (header == nullptr) return false;
  if (header->signature != request_.signature) {
    mismatched_peer_ = remote;
    return Status{Code::Mismatch, "a peer called another collective"};
  }
  const std::uint64_t bytes = header->bytes;
  if (bytes > 0 && bytes <= most_bytes_ && bytes % element_ == 0) return true;
  endpoint_.drop(remote,
                 base::format("it sent an invalid message: {} bytes of a collective of {} bytes",
                              bytes, most_bytes_));
  return Status{Code::PeerLost, "a peer sent an invalid message"};
}

// Finds the peer's next message. Without one, incoming.left stays 0.
Status Execution::find_message(Rank peer, Incoming& incoming) {
  if (endpoint_.is_remote(peer)) {
    const Result<bool> here = has_message_from(peer);
    if (!here.ok() || !here.value()) return here.status();
    const auto arrived = endpoint_.arrived(peer);
    incoming.data = arrived.data();
    incoming.left = incoming.whole = arrived.size() - arrived.size() % element_;
    incoming.delivery = transport::Delivery::Staged;
    return {};
  }
  const transport::ChannelMessage* const message = endpoint_.oldest(peer);
  if (message == nullptr) return {};
  if (message->signature != request_.signature) {
    mismatched_peer_ = peer;
    return {Code::Mismatch, "a peer called another collective"};
  }
  incoming.left = incoming.whole = message->bytes;
  incoming.delivery = message->delivery;
  if (message->delivery == transport::Delivery::Pushed) return {};
  Result<std::byte*> address = endpoint_.group().address(peer, message->location);
  if (!address.ok()) return address.status();
  incoming.data = address.value();
  return {};
}

// Takes a message whose bytes have all been used. False: the peer has given up, so they may be
// wrong.
bool Execution::take(Rank peer, const Incoming& incoming) {
  if (!endpoint_.is_remote(peer)) return endpoint_.take(peer);
  endpoint_.consume(peer, incoming.whole);
  return true;
}

kernels::Reduction Execution::reduction_of(const Instruction& instruction) const {
  const bool mean = request_.op == ReduceOp::Mean;
  if (mean && instruction.whole_sum) return kernels::mean_over(endpoint_.size(), request_.type);
  return {.type = request_.type, .op = mean ? ReduceOp::Sum : request_.op};
}

// Combines the bytes that have arrived from all sources. True when the receive is done.
Result<bool> Execution::advance_receive(std::uint32_t index) {
  const Instruction& receive = plan_->instructions()[index];
  const auto sources = plan_->sources(receive);
  for (const Rank source : sources) {
    if (source != kOwn && !is_next(index, source)) return false;
  }
  Progress& progress = progress_[index];
  const std::uint64_t total = bytes_of(receive.range);
  bool pushed = false;
  while (progress.bytes < total) {
    const Piece target = piece(receive.range, progress.bytes);
    std::uint64_t bytes = target.bytes;
    if (receive.combine == Combine::Copy && endpoint_.is_remote(sources.front())) {
      Result<bool> here = has_message_from(sources.front());
      if (!here.ok() || !here.value()) return here;
      const std::uint64_t read = endpoint_.read(sources.front(), target.data, target.bytes);
      if (read == 0) return false;
      progress.bytes += read;
      ++moves_;
      continue;
    }
    bool in_place = true;
    source_data_.clear();
    for (const Rank source : sources) {
      if (source == kOwn) {
        source_data_.push_back(target.data);
        continue;
      }
      Incoming& incoming = incoming_[static_cast<std::size_t>(source)];
      if (incoming.left == 0) {
        if (Status status = find_message(source, incoming); !status.ok()) return status;
        if (incoming.left == 0) return false;
      }
      in_place = in_place && incoming.delivery == transport::Delivery::InPlace;
      bytes = std::min(bytes, incoming.left);
      source_data_.push_back(incoming.data);
    }
    if (receive.combine == Combine::Copy) {
      const bool is_pushed = incoming_[static_cast<std::size_t>(sources.front())].delivery ==
                             transport::Delivery::Pushed;
      if (is_pushed) {
        bytes = total;
      } else {
        sluice::kernels::copy(target.data, source_data_.front(), bytes);
      }
    } else {
      pushed = in_place && bytes == total && may_push(receive);
      if (pushed) {
        store_everywhere(receive, target.data, bytes);
      } else {
        kernels::reduce_into(reduction_of(receive), target.data, source_data_, bytes / element_);
      }
    }
    progress.bytes += bytes;
    ++moves_;
    for (const Rank source : sources) {
      if (source == kOwn) continue;
      Incoming& incoming = incoming_[static_cast<std::size_t>(source)];
      incoming.left -= bytes;
      if (incoming.data != nullptr) incoming.data += bytes;
      if (incoming.left == 0 && !take(source, incoming))
        return Status{Code::PeerLost, base::format("rank {} has given up", source)};
    }
  }
  for (const Rank source : sources) {
    if (source != kOwn) ++next_receive_[static_cast<std::size_t>(source)];
  }
  if (pushed) post_pushed(receive, total);  // after the peers' own messages have been taken
  return true;
}

// Whether each send of this result is the next one to its peer.
bool Execution::may_push(const Instruction& receive) const {
  const auto pushes = plan_->pushes(receive);
  return !pushes.empty() && std::all_of(pushes.begin(), pushes.end(), [&](std::uint32_t send) {
    const Rank peer = plan_->instructions()[send].peer;
    const auto sends = plan_->sends_to(peer);
    const std::uint32_t next = next_send_[static_cast<std::size_t>(peer)];
    return next < sends.size() && sends[next] == send && endpoint_.can_post(peer);
  });
}

void Execution::store_everywhere(const Instruction& receive, std::byte* target,
                                 std::uint64_t bytes) {
  target_data_.assign(1, target);
  for (const std::uint32_t send : plan_->pushes(receive)) {
    const Rank peer = plan_->instructions()[send].peer;
    // The plan has checked that the result replaces the peer's part, and that no rank reads it.
    target_data_.push_back(const_cast<std::byte*>(incoming_[static_cast<std::size_t>(peer)].data));
  }
  kernels::reduce_to_all(reduction_of(receive), target_data_, source_data_, bytes / element_);
}

void Execution::post_pushed(const Instruction& receive, std::uint64_t bytes) {
  for (const std::uint32_t send : plan_->pushes(receive)) {
    const Rank peer = plan_->instructions()[send].peer;
    endpoint_.post(peer, {request_.signature, {}, bytes, transport::Delivery::Pushed});
    progress_[send].bytes = bytes;
    progress_[send].posted_end = endpoint_.posted(peer);
    ++next_send_[static_cast<std::size_t>(peer)];
  }
}

void Execution::run_local(std::uint32_t index) {
  const Instruction& local = plan_->instructions()[index];
  const std::uint64_t total = bytes_of(local.range);
  for (std::uint64_t done = 0; done < total;) {
    const Piece target = piece(local.range, done);
    std::uint64_t bytes = target.bytes;
    source_data_.clear();
    for (const BufferId source : plan_->sources(local)) {
      const bool own = local.combine == Combine::Reduce && source == local.range.buffer;
      const std::int32_t first = own ? local.range.first : local.source_chunk;
      const Piece read = piece({source, first, local.range.count}, done);
      source_data_.push_back(read.data);
      bytes = std::min(bytes, read.bytes);
    }
    if (local.combine == Combine::Copy) {
      sluice::kernels::copy(target.data, source_data_.front(), bytes);
    } else {
      kernels::reduce_into(reduction_of(local), target.data, source_data_, bytes / element_);
    }
    done += bytes;
  }
}

int Execution::step() const {
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    if (!progress_[i].done) return plan_->instructions()[i].step + 1;
  }
  return steps();
}

int Execution::steps() const {
  return plan_->instructions().empty() ? 0 : plan_->instructions().back().step + 1;
}

bool Execution::has_nothing_from(Rank peer) const {
  if (incoming_[static_cast<std::size_t>(peer)].left > 0) return false;
  if (!endpoint_.is_remote(peer)) return endpoint_.oldest(peer) == nullptr;
  return endpoint_.incoming(peer) == nullptr || endpoint_.arrived(peer).size() < element_;
}

bool Execution::needs(Rank peer) const {
  const auto p = static_cast<std::size_t>(peer);
  const bool more_to_come = next_receive_[p] < plan_->receives_from(peer).size();
  const bool more_to_be_taken = next_sent_done_[p] < plan_->sends_to(peer).size();
  return (more_to_come && has_nothing_from(peer)) || more_to_be_taken;
}

Rank Execution::waits_for() const {
  for (const std::uint32_t index : open_) {
    for (const Rank source : plan_->sources(plan_->instructions()[index])) {
      if (source != kOwn && has_nothing_from(source)) return source;
    }
  }
  for (Rank peer = 0; peer < endpoint_.size(); ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    if (next_sent_done_[p] < next_send_[p] && endpoint_.taken_by(peer) < endpoint_.posted(peer))
      return peer;
  }
  return kOwn;
}

}  // namespace sluice::engine
