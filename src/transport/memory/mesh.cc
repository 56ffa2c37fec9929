#include "transport/memory/mesh.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/format.h"
#include "base/text.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; libc headers lag
#endif

namespace sluice::transport {

void Packet::set_text(std::string_view text) {
  reason.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), reason.size() - 1), reason.begin());
}

bool send_packet(int socket, const Packet& packet, const SharedDescriptors* descriptors) {
  iovec data{const_cast<Packet*>(&packet), sizeof packet};  // NOLINT: sendmsg() only reads it
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(SharedDescriptors))> control{};
  if (descriptors != nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(SharedDescriptors));
    std::memcpy(CMSG_DATA(header), descriptors->data(), sizeof *descriptors);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof packet);
}

ReceivedPacket receive_packet(int socket) {
  ReceivedPacket result;
  iovec data{&result.packet, sizeof result.packet};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(SharedDescriptors))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    // A reset is reported once, before the packets that the peer had sent and the end of file.
    received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return result;

  for (cmsghdr* header = received > 0 ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t fds =
        std::min((header->cmsg_len - CMSG_LEN(0)) / sizeof(int), kSharedDescriptors);
    for (std::size_t i = 0; i < fds; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      result.descriptors[i].reset(fd);
    }
  }
  const bool valid = received == static_cast<ssize_t>(sizeof(Packet)) &&
                     result.packet.magic == Packet::kMagic && result.packet.reason.back() == '\0';
  result.state = valid ? ReceivedPacket::State::Packet : ReceivedPacket::State::Closed;
  return result;
}

std::string mesh_name(const ShmOptions& options, Rank rank) {
  return "sluice/" +
         secret_name(options.token, base::format("{}/{}/{}", getuid(), options.job, rank));
}

namespace {

constexpr auto kRetry = std::chrono::milliseconds{5};  // between attempts to connect to a rank
constexpr auto kLongestPoll = std::chrono::minutes{1};
// A peer that is ready may leave at once. It had the Ready packets of all ranks by then, so they
// arrive here soon too.
constexpr auto kDepartureGrace = std::chrono::seconds{2};
constexpr std::size_t kMostUnknown = 16;  // pending connections beyond one for each rank

struct UnixAddress {
  sockaddr_un name{};
  socklen_t bytes = 0;

  UnixAddress(const ShmOptions& options, Rank rank) {
    const std::string text = mesh_name(options, rank);
    name.sun_family = AF_UNIX;
    std::copy(text.begin(), text.end(), name.sun_path + 1);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&name);  // NOLINT: as the system calls want it
  }
};

base::Fd new_socket() {
  return base::Fd{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
}

// The process at the other end; nullopt if it belongs to another user.
std::optional<pid_t> peer_of_same_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != getuid()) {
    return std::nullopt;
  }
  return peer.pid;
}

base::Fd pidfd_of(int socket, pid_t pid) {
  int fd = -1;
  socklen_t bytes = sizeof fd;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) == 0) return base::Fd{fd};
  // A process of another pid namespace has pid 0 here; then only the socket shows its end.
  return pid > 0 ? base::Fd{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))} : base::Fd{};
}

class MeshHandshake {
 public:
  MeshHandshake(const ShmOptions& options, const SharedDescriptors& descriptors,
                std::uint64_t first_block)
      : options_{options},
        descriptors_{descriptors},
        first_block_{first_block},
        peers_(static_cast<std::size_t>(options.ranks)),
        pending_{peers_.size() + kMostUnknown, std::chrono::hours{24}} {}

  Status run() {
    Status status = listen_for_higher_ranks();
    while (status.ok()) {
      status = connect_to_lower_ranks();
      if (!status.ok()) break;
      if (!sent_ready_ && all(Stage::Linked)) send_ready();
      if (sent_ready_ && all(Stage::Ready)) return {};
      status = Clock::now() < deadline() ? wait_and_read() : too_late();
    }
    send_failure(status.message());
    return status;
  }

  std::vector<MeshPeer> peers() && {
    std::vector<MeshPeer> peers;
    for (Peer& peer : peers_) peers.push_back(std::move(peer.mesh));
    return peers;
  }

 private:
  enum class Stage : std::uint8_t { Absent, HelloSent, ProofSent, Linked, Ready };
  struct Peer {
    Stage stage = Stage::Absent;
    MeshPeer mesh;
    Packet hello;  // that was sent to a lower rank
    Nonce challenge{};
    Clock::time_point next_try;
    bool left = false;
  };
  struct Client {  // a connection that has not proven the token
    base::Fd socket;
    pid_t pid = 0;
    std::optional<Packet> hello;
    Nonce challenge{};
    int fd() const { return socket.number(); }
  };

  Status listen_for_higher_ranks() {
    if (options_.rank + 1 == options_.ranks) return {};
    listener_ = new_socket();
    const UnixAddress own{options_, options_.rank};
    if (bind(listener_.number(), own.address(), own.bytes) == 0 &&
        listen(listener_.number(), 1024) == 0) {
      return {};
    }
    if (errno == EADDRINUSE) {
      return {Code::InvalidArgument,
              base::format("{}: another process of this machine is rank {} already; "
                           "give every rank a number of its own",
                           name(), options_.rank)};
    }
    return {Code::PeerLost,
            base::format("{}: cannot listen on a socket: {}", name(), std::strerror(errno))};
  }

  Status connect_to_lower_ranks() {
    const auto now = Clock::now();
    for (Rank rank = 0; rank < options_.rank; ++rank) {
      Peer& peer = peers_[index(rank)];
      if (peer.stage != Stage::Absent || now < peer.next_try) continue;
      peer.next_try = now + kRetry;
      peer.mesh.socket = new_socket();
      const int socket = peer.mesh.socket.number();
      if (!peer.mesh.socket.open()) {
        return {Code::NoMemory,
                base::format("{}: cannot open a socket to rank {}: {}{}", name(), rank,
                             std::strerror(errno),
                             errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "")};
      }
      const UnixAddress theirs{options_, rank};
      if (connect(socket, theirs.address(), theirs.bytes) != 0) continue;
      const auto pid = peer_of_same_user(socket);
      if (!pid) {
        return {Code::PeerLost,
                base::format("{}: a process of another user poses as rank {}", name(), rank)};
      }
      peer.mesh.pid = *pid;
      peer.hello = {.kind = PacketKind::Hello,
                    .rank = options_.rank,
                    .to = rank,
                    .ranks = options_.ranks,
                    .nonce = new_nonce()};
      if (send_packet(socket, peer.hello)) peer.stage = Stage::HelloSent;
    }
    return {};
  }

  // Reads only from sockets with an event: among hundreds of ranks a system call for each of them
  // would take most of the start.
  Status wait_and_read() {
    polled_.clear();
    polled_ranks_.clear();
    auto until = deadline();
    for (Rank rank = 0; rank < options_.ranks; ++rank) {
      const Peer& peer = peers_[index(rank)];
      if (peer.stage == Stage::Absent) {
        if (rank < options_.rank) until = std::min(until, Clock::now() + kRetry);
      } else if (!peer.left) {
        // Packets after Ready are not for the handshake. It only notices that the peer is gone.
        polled_.push_back({peer.mesh.socket.number(),
                           static_cast<short>(peer.stage == Stage::Ready ? 0 : POLLIN), 0});
        polled_ranks_.push_back(rank);
      }
    }
    if (listener_.open()) polled_.push_back({listener_.number(), POLLIN, 0});
    pending_.add_to(polled_);
    if (poll(polled_.data(), polled_.size(), poll_timeout(until, kLongestPoll)) <= 0) return {};
    pending_.note_events(polled_);

    if (listener_.open()) {
      Status status =
          pending_.accept_all(listener_, name(), [](base::Fd socket) -> std::optional<Client> {
            const auto pid = peer_of_same_user(socket.number());
            if (!pid) return std::nullopt;
            return Client{.socket = std::move(socket), .pid = *pid};
          });
      if (!status.ok()) return status;
    }
    pending_.read_all([this](Client& client) {
      ReceivedPacket received = receive_packet(client.fd());
      if (received.state == ReceivedPacket::State::Nothing) return false;
      if (received.state == ReceivedPacket::State::Closed) return true;
      if (!client.hello && received.packet.kind == PacketKind::Hello)
        return !challenge(client, received.packet);
      admit(client, std::move(received));
      return true;
    });
    for (std::size_t i = 0; i < polled_ranks_.size(); ++i) {
      if (polled_[i].revents == 0) continue;
      Status status = read_from(polled_ranks_[i]);
      if (!status.ok()) return status;
    }
    return {};
  }

  // False: the client has gone.
  static bool challenge(Client& client, const Packet& hello) {
    client.hello = hello;
    client.challenge = new_nonce();
    return send_packet(client.fd(), {.kind = PacketKind::Challenge, .nonce = client.challenge});
  }

  void admit(Client& client, ReceivedPacket&& received) {
    const std::string why = refusal_of(client, received);
    if (!why.empty()) {
      last_refused_ = base::format("process {} was refused: {}", client.pid, why);
      Packet refusal{.kind = PacketKind::Refusal, .rank = options_.rank};
      refusal.set_text(why);
      (void)send_packet(client.fd(), refusal);
      return;
    }
    // This can fail because too many descriptors are in flight. The client then connects again.
    if (!send_proof(client.fd(), PacketKind::Welcome,
                    transcript_of(*client.hello, client.challenge)))
      return;
    Peer& peer = peers_[index(client.hello->rank)];
    peer.mesh.socket = std::move(client.socket);
    peer.mesh.pid = client.pid;
    link(peer, std::move(received));
  }

  std::string refusal_of(const Client& client, const ReceivedPacket& received) const {
    if (!client.hello) return "it sent no hello";
    const Packet& hello = *client.hello;
    if (received.packet.kind != PacketKind::Proof ||
        !is_proven(options_.token, Side::Client, transcript_of(hello, client.challenge),
                   received.packet.proof))
      return std::string{kWrongToken};
    std::string why = reason_to_refuse({hello.rank, hello.ranks}, options_.ranks);
    if (!why.empty()) return why;
    if (!received.has_descriptors())
      return "its memory did not arrive; is the limit of open files (ulimit -n) too low?";
    if (hello.rank <= options_.rank || hello.to != options_.rank)
      return base::format("rank {} must not connect to rank {}", hello.rank, options_.rank);
    if (peers_[index(hello.rank)].stage != Stage::Absent)
      return base::format("rank {} has joined already", hello.rank);
    return "";
  }

  // A Proof or a Welcome.
  bool send_proof(int socket, PacketKind kind, const Transcript& transcript) const {
    const auto proof =
        prove(options_.token, kind == PacketKind::Proof ? Side::Client : Side::Server, transcript);
    return proof && send_packet(socket,
                                {.kind = kind,
                                 .rank = options_.rank,
                                 .ranks = options_.ranks,
                                 .first_block = first_block_,
                                 .proof = *proof},
                                &descriptors_);
  }

  static Transcript transcript_of(const Packet& hello, const Nonce& challenge) {
    return {"mesh", std::as_bytes(std::span{&hello, 1}), challenge};
  }

  static void link(Peer& peer, ReceivedPacket&& received) {
    peer.mesh.process = pidfd_of(peer.mesh.socket.number(), peer.mesh.pid);
    peer.mesh.memory = std::move(received.descriptors[0]);
    peer.mesh.wake_descriptor = std::move(received.descriptors[1]);
    peer.mesh.first_block = received.packet.first_block;
    peer.stage = Stage::Linked;
  }

  // REQUIRES: the peer's socket has an event.
  Status read_from(Rank rank) {
    Peer& peer = peers_[index(rank)];
    if (peer.stage == Stage::Ready) {
      peer.left = true;
      departure_deadline_ = std::min(departure_deadline_, Clock::now() + kDepartureGrace);
      return {};
    }
    ReceivedPacket received = receive_packet(peer.mesh.socket.number());
    if (received.state == ReceivedPacket::State::Nothing) return {};
    const Packet& packet = received.packet;
    if (received.state == ReceivedPacket::State::Closed) {
      if (peer.stage >= Stage::Linked) return lost(rank);
      peer.stage = Stage::Absent;  // connect again
    } else if (packet.kind == PacketKind::Refusal) {
      return {Code::InvalidArgument,
              base::format("{}: rank {} refused this process: {}", name(), rank, packet.text())};
    } else if (packet.kind == PacketKind::Failed) {
      return {Code::PeerLost, base::format("{}: rank {} gave up: {}", name(), rank, packet.text())};
    } else if (packet.kind == PacketKind::Ready && peer.stage == Stage::Linked) {
      peer.stage = Stage::Ready;
    } else if (packet.kind == PacketKind::Challenge && peer.stage == Stage::HelloSent) {
      peer.challenge = packet.nonce;
      const bool sent = send_proof(peer.mesh.socket.number(), PacketKind::Proof,
                                   transcript_of(peer.hello, peer.challenge));
      peer.stage = sent ? Stage::ProofSent : Stage::Absent;
    } else if (packet.kind == PacketKind::Welcome && peer.stage == Stage::ProofSent &&
               is_proven(options_.token, Side::Server, transcript_of(peer.hello, peer.challenge),
                         packet.proof) &&
               received.has_descriptors()) {
      link(peer, std::move(received));
    } else {
      return {Code::PeerLost,
              base::format("{}: the process that answers as rank {} is not a rank of this job",
                           name(), rank)};
    }
    return {};
  }

  void send_ready() {
    // The listener closes before Ready is sent: a peer may leave and join again under the same
    // name.
    listener_.reset();
    pending_.clear();
    for (Rank rank = 0; rank < options_.ranks; ++rank) {
      if (rank != options_.rank) {
        (void)send_packet(peers_[index(rank)].mesh.socket.number(),
                          {.kind = PacketKind::Ready, .rank = options_.rank});
      }
    }
    sent_ready_ = true;
  }

  void send_failure(const std::string& why) {
    Packet packet{.kind = PacketKind::Failed, .rank = options_.rank};
    packet.set_text(why);
    for (const Peer& peer : peers_) {
      if (peer.stage != Stage::Absent) (void)send_packet(peer.mesh.socket.number(), packet);
    }
  }

  Status too_late() const {
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < options_.ranks; ++rank) {
      const Peer& peer = peers_[index(rank)];
      if (peer.left) return lost(rank);
      if (rank != options_.rank && peer.stage < (sent_ready_ ? Stage::Ready : Stage::Linked))
        missing.push_back(rank);
    }
    std::string text =
        base::format("{}: {} of {} ranks joined, waiting for {}", name(),
                     peers_.size() - missing.size(), options_.ranks, show_ranks(missing));
    if (missing.size() + 1 == peers_.size())
      text += "; ranks find each other only with the same SLUICE_JOB and SLUICE_TOKEN";
    if (!last_refused_.empty()) text += base::format(" ({})", last_refused_);
    return {Code::DeadlineExceeded, text};
  }

  Status lost(Rank rank) const {
    return {Code::PeerLost,
            base::format("{}: rank {} (process {}) was lost before all {} ranks had joined", name(),
                         rank, peers_[index(rank)].mesh.pid, options_.ranks)};
  }

  bool all(Stage stage) const {
    for (Rank rank = 0; rank < options_.ranks; ++rank) {
      if (rank != options_.rank && peers_[index(rank)].stage < stage) return false;
    }
    return true;
  }

  std::string name() const {
    return base::format("rank {} of job {}", options_.rank, base::quote(options_.job));
  }
  Clock::time_point deadline() const { return std::min(options_.deadline, departure_deadline_); }
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

  const ShmOptions& options_;
  SharedDescriptors descriptors_;
  std::uint64_t first_block_;
  std::vector<Peer> peers_;  // by rank; this rank's own entry stays absent
  std::vector<pollfd> polled_;
  std::vector<Rank> polled_ranks_;  // of the first entries of polled_
  PendingConnections<Client> pending_;
  base::Fd listener_;
  bool sent_ready_ = false;
  Clock::time_point departure_deadline_ = Clock::time_point::max();
  std::string last_refused_;
};

}  // namespace

Result<std::vector<MeshPeer>> join_mesh(const ShmOptions& options,
                                        const SharedDescriptors& descriptors,
                                        std::uint64_t first_block) {
  constexpr int kMostRanks = 4096;
  Status status = check_join(options.rank, options.ranks, kMostRanks, options.token);
  if (!status.ok()) return status;
  MeshHandshake handshake{options, descriptors, first_block};
  status = handshake.run();
  if (!status.ok()) return status;
  return std::move(handshake).peers();
}

}  // namespace sluice::transport
