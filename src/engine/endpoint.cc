#include "engine/endpoint.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

void fence_after_reads() {
#if !defined(__SANITIZE_THREAD__)  // which knows no fences, and finds no fault without this one
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace

Endpoint::Endpoint(std::unique_ptr<transport::Group> group)
    : group_{std::move(group)},
      posted_(static_cast<std::size_t>(group_->size()), 0),
      taken_(posted_.size(), 0),
      staging_(posted_.size()) {}

Endpoint::~Endpoint() {
  for (const transport::MemoryBlock& segment : staging_) {
    if (segment.data != nullptr) group_->memory().release(segment);
  }
}

bool Endpoint::can_post(Rank peer) const {
  return posted(peer) - taken_by(peer) < transport::kWindow;
}

void Endpoint::post(Rank peer, const transport::ChannelMessage& message) {
  transport::Channel& channel = group_->channel_to(peer);
  std::uint64_t& posted = posted_[index(peer)];
  channel.messages[posted % transport::kWindow] = message;
  channel.posted.store(++posted, std::memory_order_seq_cst);
  group_->ring(peer);
}

void Endpoint::send(Rank peer, const transport::MessageHeader& header, const std::byte* data) {
  ++posted_[index(peer)];
  group_->network()->send(peer, header, data);
}

std::uint64_t Endpoint::taken_by(Rank peer) const {
  if (!group_->is_local(peer)) return group_->network()->sent(peer);
  return group_->channel_to(peer).taken.load(std::memory_order_seq_cst);
}

const transport::ChannelMessage* Endpoint::oldest(Rank peer) const {
  transport::Channel& channel = group_->channel_from(peer);
  const std::uint64_t taken = taken_[index(peer)];
  if (channel.posted.load(std::memory_order_seq_cst) == taken) return nullptr;
  return &channel.messages[taken % transport::kWindow];
}

bool Endpoint::take(Rank peer) {
  transport::Channel& channel = group_->channel_from(peer);
  // A rank withdraws before its memory changes: where that is not seen even now, after all that was
  // read, nothing had changed. Once the message is taken its sender may do as it likes.
  fence_after_reads();
  if (channel.withdrawn.load(std::memory_order_acquire) != 0) return false;
  channel.taken.store(++taken_[index(peer)], std::memory_order_seq_cst);
  group_->ring(peer);
  return true;
}

void Endpoint::withdraw() {
  for (Rank peer = 0; peer < group_->size(); ++peer)
    if (group_->is_local(peer))
      group_->channel_to(peer).withdrawn.store(1, std::memory_order_seq_cst);
  std::fill(staging_.begin(), staging_.end(), transport::MemoryBlock{});  // never released
}

Result<Endpoint::Staging> Endpoint::staging(Rank peer) {
  transport::MemoryBlock& segment = staging_[index(peer)];
  if (segment.data == nullptr) {
    Result<transport::MemoryBlock> made =
        group_->memory().allocate(transport::kWindow * kStagedBytes);
    if (!made.ok()) return made.status();
    segment = made.value();
  }
  const std::uint64_t offset = posted(peer) % transport::kWindow * kStagedBytes;
  return Staging{segment.data + offset, {segment.id, offset}};
}

}  // namespace sluice::engine
