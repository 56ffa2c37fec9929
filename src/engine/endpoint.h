// endpoint.h - a rank's end of the ways to its peers: channels on its node, routes to others.
//
// On a node a message names bytes, and is counted when its receiver has taken them; to another node
// the bytes themselves go, and are counted when they are out of this rank's hands.
//
// Lives as long as the communicator; one collective after the other uses it. Thread-safety: one
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
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

  bool can_post(Rank peer) const;
  std::uint64_t posted(Rank peer) const { return posted_[index(peer)]; }
  std::uint64_t taken_by(Rank peer) const;

  // To a rank of another node; the bytes must stay until they are counted as taken.
  void send(Rank peer, const transport::MessageHeader& header, const std::byte* data);

  // To and from a rank of this node.
  void post(Rank peer, const transport::ChannelMessage& message);
  // The oldest message from a peer that has not been taken; null if there is none.
  const transport::ChannelMessage* oldest(Rank peer) const;
  // False: the peer has given up, so what was read may not be what it meant to send.
  bool take(Rank peer);

  // This rank gives up. Its memory stays as it is for peers that are still reading.
  void withdraw();

  // Memory for a staged segment to a peer; REQUIRES: can_post(peer). The kWindow segments of a peer
  // are used in turn, so one is free again when its message is taken.
  static constexpr std::size_t kStagedBytes = std::size_t{1} << 17;
  struct Staging {
    std::byte* data = nullptr;
    transport::MemoryLocation location;
  };
  Result<Staging> staging(Rank peer);

 private:
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

  std::unique_ptr<transport::Group> group_;
  std::vector<std::uint64_t> posted_;            // to each peer, so far
  std::vector<std::uint64_t> taken_;             // from each peer, so far
  std::vector<transport::MemoryBlock> staging_;  // for each peer, made at first use
};

}  // namespace sluice::engine
