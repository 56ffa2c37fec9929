// node_join.h - how the processes of a node join: each of them connects to the node's first rank.
//
// Rank 0 listens on an abstract address, which has no file and disappears with the process. Only
// processes with the token know its name, so nobody else can take it first. The others connect,
// prove the token (transport/token_proof.h), and receive a file, in which all ranks of the node
// have their memory (arena.h). Its first block begins with a table in which each rank describes
// itself. So a rank needs one connection however many ranks there are, and no message to reach a
// peer's memory, to wake it or to see its end.
//
// Rank 0 closes connections from processes of other users unread, and refuses a process that cannot
// prove the token. No rank returns before all ranks are in the table.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "transport/handshake.h"
#include "transport/memory/arena.h"
#include "transport/memory/memory.h"
#include "transport/token_proof.h"

namespace sluice::transport {

enum class Presence : std::uint32_t {
  Absent,
  Joined,
  Left,  // it left without a failure
  Gone,  // its process has ended, as some rank has seen
};

// A rank's entry in the table. The rank writes the rest before `presence`.
struct NodeMember {
  alignas(64) std::atomic<Presence> presence;
  pid_t pid;
  std::uint64_t started;           // the start of the process, since process numbers are reused
  std::uint64_t pid_namespace;     // where `pid` counts; 0: unknown
  std::array<char, 40> wake_name;  // an abstract address; a datagram to it wakes the rank
};

// A view of the first bytes of rank 0's first block.
class NodeTable {
 public:
  NodeTable() = default;
  NodeTable(std::byte* memory, int ranks) : memory_{memory}, ranks_{ranks} {}
  static std::size_t bytes(int ranks) {
    return static_cast<std::size_t>(ranks) * sizeof(NodeMember);
  }
  NodeMember& operator[](Rank rank) const {
    return reinterpret_cast<NodeMember*>(memory_)[rank];  // NOLINT: typed view of shared memory
  }
  std::vector<Rank> absent() const;

 private:
  std::byte* memory_ = nullptr;
  int ranks_ = 0;
};

// Rank 0 and another process exchange packets over SOCK_SEQPACKET sockets: a packet arrives whole
// or not at all. The functions for packets do not block.
enum class PacketKind : std::uint32_t {
  Hello,      // to rank 0
  Challenge,  // the answer
  Proof,      // of the token
  Welcome,    // the answer when the proof is accepted: a proof, and the file of the node's memory
  Refusal,    // the answer when it is not, with the reason
  Joined,     // the sender is in the table
  Ready,      // all ranks are in the table
  Failed,     // the sender gives up, with the reason
};

struct Packet {
  static constexpr std::uint64_t kMagic =
      0x736c7569'63650003;  // "sluice" and the protocol's version
  std::uint64_t magic = kMagic;
  PacketKind kind = PacketKind::Hello;
  Rank rank = 0;  // of the sender
  std::int32_t ranks = 0;
  std::uint32_t first_pages = 0;   // of rank 0's first block, in a Welcome
  Nonce nonce{};                   // in a Hello and a Challenge
  TokenProof proof{};              // in a Proof and a Welcome
  std::array<char, 256> reason{};  // ends with a zero

  std::string_view text() const { return {reason.data()}; }
  void set_text(std::string_view text);
};
static_assert(sizeof(Packet) == 24 + 32 + 32 + 256, "a proof covers a Hello, so it has no padding");

// The name of the abstract address of rank 0.
std::string node_name(const ShmOptions& options);

// False: the packet could not be sent; errno has the reason. -1: no descriptor.
bool send_packet(int socket, const Packet& packet, int descriptor = -1);

struct ReceivedPacket {
  enum class State : std::uint8_t { Nothing, Packet, Closed };
  State state = State::Nothing;
  Packet packet;
  base::Fd descriptor;
};
// Anything but a valid packet counts as a closed connection.
ReceivedPacket receive_packet(int socket);

// Wakes a rank whose wake_name this is. `socket` is a wake socket.
void send_wake(int socket, const NodeMember& member);

// A pidfd of a rank's process. Closed: the process has another process namespace, or has ended and
// its number is used again.
base::Fd process_of(const NodeMember& member);

// This rank's part of the node.
struct NodeMembership {
  base::Fd file;              // the memory of all ranks
  PageRange first;            // of rank 0's pages
  std::byte* data = nullptr;  // `first`, mapped: the table, and what follows it
  NodeTable table;
  base::Fd wake;  // readable when a peer wakes this rank
  // Rank 0's connections by rank, or the connection to rank 0. They end with the process.
  std::vector<base::Fd> connections;
};

// `first_bytes` is the size of what follows the table in rank 0's first block. The error names the
// missing ranks.
Result<NodeMembership> join_node(const ShmOptions& options, std::size_t first_bytes);

}  // namespace sluice::transport
