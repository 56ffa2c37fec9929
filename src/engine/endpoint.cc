#include "engine/endpoint.h"

#include <utility>

namespace sluice::engine {
namespace {

void fence_after_reads() {
#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support fences
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace

Endpoint::Endpoint(std::unique_ptr<transport::Group> group)
    : group_{std::move(group)},
      posted_(static_cast<std::size_t>(group_->size()), 0),
      taken_(posted_.size(), 0) {}

Endpoint::~Endpoint() {
  if (staging_.data != nullptr) group_->memory().release(staging_);
}

void Endpoint::post(Rank peer, const transport::ChannelMessage& message) {
  transport::Channel& channel = group_->channel_to(peer);
  std::uint64_t& posted = posted_[index(peer)];
  channel.messages[posted % transport::kWindow] = message;
  channel.posted.store(++posted, std::memory_order_seq_cst);
  group_->ring(peer);
}

std::uint64_t Endpoint::taken_by(Rank peer) const {
  if (is_remote(peer)) return network().sent(peer);
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
  // A rank withdraws before its memory changes. If no withdrawal is visible now, after all reads,
  // the bytes had not changed. Once the message is taken, its sender may change them.
  fence_after_reads();
  if (channel.withdrawn.load(std::memory_order_acquire) != 0) return false;
  channel.taken.store(++taken_[index(peer)], std::memory_order_seq_cst);
  group_->ring(peer);
  return true;
}

void Endpoint::withdraw() {
  for (Rank peer = 0; peer < size(); ++peer) {
    if (!is_remote(peer)) group_->channel_to(peer).withdrawn.store(1, std::memory_order_seq_cst);
  }
  staging_ = {};  // the destructor must not release it
}

Result<Endpoint::Staging> Endpoint::staging(Rank peer) {
  if (staging_.data == nullptr) {
    Result<transport::MemoryBlock> made =
        group_->memory().allocate(posted_.size() * transport::kWindow * kStagedBytes);
    if (!made.ok()) return made.status();
    staging_ = made.value();
  }
  const std::uint64_t segment =
      index(peer) * transport::kWindow + posted(peer) % transport::kWindow;
  const std::uint64_t offset = segment * kStagedBytes;
  return Staging{staging_.data + offset, {staging_.id, offset}};
}

}  // namespace sluice::engine
