// endpoint.h - the messages between this rank and its peers.
//
// A message to a rank of this node names the location of its bytes, and counts as taken when its
// receiver has used them. A message to a rank of another node carries its bytes, and counts as
// taken when this rank may change them.
//
// An endpoint lives as long as its communicator, and serves one collective after the other.
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/group.h"

namespace sluice::engine {

class Endpoint {
 public:
  explicit Endpoint(std::unique_ptr<transport::Group> group);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  transport::Group& group() const { return *group_; }
  int size() const { return group_->size(); }
  bool is_remote(Rank peer) const { return !group_->is_local(peer); }
  bool has_network() const { return group_->network() != nullptr; }

  // How many messages to a peer were posted and taken, and whether the window has room for another.
  bool can_post(Rank peer) const { return posted(peer) - taken_by(peer) < transport::kWindow; }
  std::uint64_t posted(Rank peer) const { return posted_[index(peer)]; }
  std::uint64_t taken_by(Rank peer) const;

  // To a rank of another node. The bytes must stay until the message counts as taken.
  void send(Rank peer, const transport::MessageHeader& header, const std::byte* data) {
    ++posted_[index(peer)];
    network().send(peer, header, data);
  }
  // Messages from a rank of another node, as Network defines these functions.
  const transport::MessageHeader* incoming(Rank peer) const { return network().incoming(peer); }
  std::span<const std::byte> arrived(Rank peer) const { return network().arrived(peer); }
  void consume(Rank peer, std::uint64_t bytes) { network().consume(peer, bytes); }
  std::uint64_t read(Rank peer, std::byte* to, std::uint64_t bytes) {
    return network().read(peer, to, bytes);
  }
  void drop(Rank peer, const std::string& why) { network().drop(peer, why); }
  // Grows while bytes move between nodes.
  std::uint64_t moved() const { return has_network() ? network().send_progress() : 0; }
  void limit_receive_buffers() { network().limit_receive_buffers(); }

  // To a rank of this node.
  void post(Rank peer, const transport::ChannelMessage& message);
  // From a rank of this node: the oldest message that has not been taken; null if there is none.
  const transport::ChannelMessage* oldest(Rank peer) const;
  // Counts that message as taken. False: the peer has given up, so the bytes that were read may be
  // wrong.
  bool take(Rank peer);

  // Reports to all local peers that this rank gives up. Its staging memory is never released,
  // because peers may still read it.
  void withdraw();

  // Memory for a staged segment to a peer. REQUIRES: can_post(peer). A peer has kWindow segments,
  // used in turn, so a segment is free again when its message is taken. All segments are in one
  // memory block, which takes memory only for those that were used, so that the system calls for it
  // do not grow with the number of peers.
  static constexpr std::size_t kStagedBytes = std::size_t{1} << 17;
  struct Staging {
    std::byte* data = nullptr;
    transport::MemoryLocation location;
  };
  Result<Staging> staging(Rank peer);

 private:
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
  transport::Network& network() const { return *group_->network(); }

  std::unique_ptr<transport::Group> group_;
  std::vector<std::uint64_t> posted_;  // messages to each peer, so far
  std::vector<std::uint64_t> taken_;   // messages from each peer, so far
  transport::MemoryBlock staging_;     // of all peers, allocated at first use
};

}  // namespace sluice::engine
