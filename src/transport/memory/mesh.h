// mesh.h - how the processes of a node find each other: a Unix socket between every two ranks.
//
// A rank listens on an abstract name (nothing in the file system, gone with the process) that holds
// user, job and rank; it calls the lower ranks and is called by the higher ones. Whoever is not of
// the same user is hung up on unread; whoever does not know the token is refused. Each rank hands
// every peer its gift (packet.h) and one word. No rank is done before every rank has all its links.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/memory/memory.h"

namespace sluice::transport {

// The processes of a node talk in packets over SOCK_SEQPACKET sockets: a packet arrives whole or
// not at all, and may carry file descriptors. Nothing here blocks.
enum class PacketKind : std::uint32_t {
  Hello,    // a rank to a lower one: who it is, its token, its memory
  Welcome,  // the answer, with the same
  Refusal,  // the other answer, and why
  Ready,    // all its peers have joined
  GivesUp,  // it will not join, and why
  Goodbye,  // it leaves in order
};

struct Packet {
  static constexpr std::uint64_t kMagic =
      0x736c7569'63650001;  // "sluice" and the protocol's version
  std::uint64_t magic = kMagic;
  PacketKind kind = PacketKind::Hello;
  Rank rank = 0;
  std::int32_t ranks = 0;
  std::uint64_t word = 0;        // of a Hello or Welcome: what the rank wants its peers to know
  std::array<char, 256> text{};  // the token, or a reason; ends with a zero

  std::string_view words() const { return {text.data()}; }
  void set_words(std::string_view words);
};

// What a Hello and a Welcome bring: the rank's memory, and what wakes it.
inline constexpr std::size_t kSharedDescriptors = 2;
using SharedDescriptors = std::array<int, kSharedDescriptors>;

// False: it could not be sent, errno says why.
bool send_packet(int socket, const Packet& packet, const SharedDescriptors* gift = nullptr);

struct ReceivedPacket {
  enum class State : std::uint8_t { Nothing, Packet, Closed };
  State state = State::Nothing;
  Packet packet;
  std::array<base::Fd, kSharedDescriptors> fds;

  bool has_gift() const { return fds.back().open(); }
};
// What is not a packet of ours counts as a closed connection.
ReceivedPacket receive_packet(int socket);

// What a rank has of a peer; of itself, nothing.
struct MeshLink {
  base::Fd socket;
  base::Fd process;  // a pidfd; not open where the system has none
  pid_t pid = 0;
  base::Fd memory;  // what it handed over
  base::Fd waker;
  std::uint64_t word = 0;
};

// One link a rank. Fails with a sentence that says who is missing.
Result<std::vector<MeshLink>> join_mesh(const ShmOptions& join, const SharedDescriptors& gift,
                                        std::uint64_t word);

}  // namespace sluice::transport
