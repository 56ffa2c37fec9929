// packet.h - what the processes of a node say to each other over Unix sockets, one packet a
// message.
//
// Sockets are SOCK_SEQPACKET: a packet arrives whole or not at all. File descriptors may ride
// along. Nothing here blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fd.h"
#include "sluice/schedule.h"

namespace sluice::transport {

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

}  // namespace sluice::transport
