#include "transport/memory/packet.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::transport {

void Packet::set_words(std::string_view words) {
  text.fill('\0');
  std::copy_n(words.begin(), std::min(words.size(), text.size() - 1), text.begin());
}

bool send_packet(int socket, const Packet& packet, const SharedDescriptors* gift) {
  iovec data{const_cast<Packet*>(&packet), sizeof packet};  // NOLINT: sendmsg() only reads it
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(SharedDescriptors))> control{};
  if (gift != nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(SharedDescriptors));
    std::memcpy(CMSG_DATA(header), gift->data(), sizeof *gift);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof packet);
}

ReceivedPacket receive_packet(int socket) {
  ReceivedPacket arrival;
  iovec data{&arrival.packet, sizeof arrival.packet};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(SharedDescriptors))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    // A reset is told once, before what the peer had sent; then come the packets, then the end.
    received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return arrival;

  for (cmsghdr* header = received > 0 ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t fds =
        std::min((header->cmsg_len - CMSG_LEN(0)) / sizeof(int), SharedDescriptors{}.size());
    for (std::size_t i = 0; i < fds; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      arrival.fds[i].reset(fd);
    }
  }
  const bool ours = received == static_cast<ssize_t>(sizeof(Packet)) &&
                    arrival.packet.magic == Packet::kMagic && arrival.packet.text.back() == '\0';
  arrival.state = ours ? ReceivedPacket::State::Packet : ReceivedPacket::State::Closed;
  return arrival;
}

}  // namespace sluice::transport
