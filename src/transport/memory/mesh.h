// mesh.h - how the processes of a node find each other: a Unix socket between every two ranks.
//
// A rank listens on an abstract address, which has no file and disappears with the process. Only
// processes with the token know its name, so nobody else can take it first. The rank connects to
// lower ranks and accepts connections from higher ranks. It closes connections from processes of
// other users unread, and refuses a process that cannot prove the token (transport/token_proof.h).
// Two ranks exchange their descriptors and the id of a memory block. No rank returns before all
// ranks have all their connections.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "transport/handshake.h"
#include "transport/memory/memory.h"
#include "transport/token_proof.h"

namespace sluice::transport {

// The processes of a node exchange packets over SOCK_SEQPACKET sockets: a packet arrives whole or
// not at all, and may carry file descriptors. The functions for packets do not block.
enum class PacketKind : std::uint32_t {
  Hello,      // to a lower rank
  Challenge,  // the answer
  Proof,      // of the token, with descriptors
  Welcome,    // the answer when the proof is accepted: the same
  Refusal,    // the answer when it is not, with the reason
  Ready,      // all peers of the sender have joined
  Failed,     // the sender will not join, with the reason
  Goodbye,    // the sender leaves without a failure
};

struct Packet {
  static constexpr std::uint64_t kMagic =
      0x736c7569'63650002;  // "sluice" and the protocol's version
  std::uint64_t magic = kMagic;
  PacketKind kind = PacketKind::Hello;
  Rank rank = 0;  // of the sender
  Rank to = 0;
  std::int32_t ranks = 0;
  std::uint64_t first_block = 0;   // see join_mesh()
  Nonce nonce{};                   // in a Hello and a Challenge
  TokenProof proof{};              // in a Proof and a Welcome
  std::array<char, 256> reason{};  // ends with a zero

  std::string_view text() const { return {reason.data()}; }
  void set_text(std::string_view text);
};
static_assert(sizeof(Packet) == 32 + 32 + 32 + 256, "a proof covers a Hello, so it has no padding");

// The name of a rank's abstract address.
std::string mesh_name(const ShmOptions& options, Rank rank);

// The descriptors in a Proof or Welcome: the rank's memory, and the eventfd that wakes it.
inline constexpr std::size_t kSharedDescriptors = 2;
using SharedDescriptors = std::array<int, kSharedDescriptors>;

// False: the packet could not be sent; errno has the reason.
bool send_packet(int socket, const Packet& packet, const SharedDescriptors* descriptors = nullptr);

struct ReceivedPacket {
  enum class State : std::uint8_t { Nothing, Packet, Closed };
  State state = State::Nothing;
  Packet packet;
  std::array<base::Fd, kSharedDescriptors> descriptors;

  bool has_descriptors() const { return descriptors.back().open(); }
};
// Anything but a valid packet counts as a closed connection.
ReceivedPacket receive_packet(int socket);

// A peer's process; empty at the rank's own index.
struct MeshPeer {
  base::Fd socket;
  base::Fd process;  // a pidfd; closed where the system has none
  pid_t pid = 0;
  base::Fd memory;
  base::Fd wake_descriptor;
  std::uint64_t first_block = 0;
};

// Returns all peers, by rank. `first_block` is sent to each of them. The error names the missing
// ranks.
Result<std::vector<MeshPeer>> join_mesh(const ShmOptions& options,
                                        const SharedDescriptors& descriptors,
                                        std::uint64_t first_block);

}  // namespace sluice::transport
