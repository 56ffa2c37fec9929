#include "transport/memory/mesh.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "base/text.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; libc headers lag
#endif

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

namespace {

constexpr auto kRetry = std::chrono::milliseconds{5};  // between calls to a rank that is not up
constexpr auto kPartGrace = std::chrono::seconds{2};   // for news that a leaver already had

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// Abstract names hold 107 bytes, so a long job is there by its hash.
Address address_of(const std::string& job, Rank rank) {
  constexpr std::size_t kLongestJob = 64;
  const std::string shown = job.size() <= kLongestJob
                                ? job
                                : base::format("{:016x}", XXH3_64bits(job.data(), job.size()));
  const std::string text = base::format("sluice/{}/{}/{}", getuid(), shown, rank);
  Address address;
  address.name.sun_family = AF_UNIX;
  std::copy(text.begin(), text.end(), address.name.sun_path + 1);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

base::Fd new_socket() {
  return base::Fd{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
}

// The process at the other end, if it is of this user.
std::optional<pid_t> trusted_peer(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != getuid()) {
    return std::nullopt;
  }
  return peer.pid;
}

base::Fd process_at(int socket, pid_t pid) {
  int fd = -1;
  socklen_t bytes = sizeof fd;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) == 0) return base::Fd{fd};
  // A process of another pid namespace shows as 0; then the socket alone tells of its end.
  return pid > 0 ? base::Fd{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))} : base::Fd{};
}

class Joining {
 public:
  Joining(const ShmOptions& join, const SharedDescriptors& gift, std::uint64_t word)
      : join_{join}, gift_{gift}, word_{word}, peers_(static_cast<std::size_t>(join.ranks)) {}

  Status run() {
    Status status = listen_for_callers();
    while (status.ok()) {
      status = call_lower_ranks();
      if (!status.ok()) break;
      if (!said_ready_ && all(Stage::Linked)) say_ready();
      if (said_ready_ && all(Stage::Ready)) return {};
      status = Clock::now() < deadline() ? wait_and_read() : too_late();
    }
    give_up(status.message());
    return status;
  }

  std::vector<MeshLink> links() && {
    std::vector<MeshLink> links;
    for (Peer& peer : peers_) links.push_back(std::move(peer.link));
    return links;
  }

 private:
  enum class Stage : std::uint8_t { Absent, Called, Linked, Ready };
  struct Peer {
    Stage stage = Stage::Absent;
    MeshLink link;
    Clock::time_point next_call;
    bool left = false;
  };
  struct Caller {  // has not said yet who it is
    base::Fd socket;
    pid_t pid = 0;
  };

  Status listen_for_callers() {
    if (join_.rank + 1 == join_.ranks) return {};
    listener_ = new_socket();
    const Address own = address_of(join_.job, join_.rank);
    const auto* const name =
        reinterpret_cast<const sockaddr*>(&own.name);  // NOLINT: as bind() wants
    if (bind(listener_.number(), name, own.bytes) == 0 && listen(listener_.number(), 1024) == 0)
      return {};
    if (errno == EADDRINUSE) {
      return {Code::InvalidArgument,
              base::format("{}: another process of this machine is rank {} already; "
                           "every rank needs a number of its own",
                           who(), join_.rank)};
    }
    return {Code::PeerLost,
            base::format("{}: no socket to listen on: {}", who(), std::strerror(errno))};
  }

  Status call_lower_ranks() {
    const auto now = Clock::now();
    for (Rank rank = 0; rank < join_.rank; ++rank) {
      Peer& peer = peers_[index(rank)];
      if (peer.stage != Stage::Absent || now < peer.next_call) continue;
      peer.next_call = now + kRetry;
      peer.link.socket = new_socket();
      if (!peer.link.socket.open()) {
        return {Code::PeerLost,
                base::format("{}: no socket for rank {}: {}", who(), rank, std::strerror(errno))};
      }
      const Address theirs = address_of(join_.job, rank);
      const auto* const name =
          reinterpret_cast<const sockaddr*>(&theirs.name);  // NOLINT: as connect() wants
      if (connect(peer.link.socket.number(), name, theirs.bytes) != 0) continue;
      const auto pid = trusted_peer(peer.link.socket.number());
      if (!pid) {
        return {Code::PeerLost,
                base::format("{}: a process of another user poses as rank {}", who(), rank)};
      }
      peer.link.pid = *pid;
      if (send_packet(peer.link.socket.number(), introduction(PacketKind::Hello), &gift_))
        peer.stage = Stage::Called;
    }
    return {};
  }

  Status wait_and_read() {
    std::vector<pollfd> polled;
    bool calling = false;
    if (listener_.open()) polled.push_back({listener_.number(), POLLIN, 0});
    for (const Caller& caller : callers_) polled.push_back({caller.socket.number(), POLLIN, 0});
    for (Rank rank = 0; rank < join_.ranks; ++rank) {
      const Peer& peer = peers_[index(rank)];
      if (peer.stage == Stage::Absent) {
        calling |= rank < join_.rank;
      } else if (!peer.left) {
        // What comes after Ready is not for the joining to read; only that the peer is gone.
        polled.push_back({peer.link.socket.number(),
                          static_cast<short>(peer.stage == Stage::Ready ? 0 : POLLIN), 0});
      }
    }
    const auto until = calling ? std::min(deadline(), Clock::now() + kRetry) : deadline();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    poll(polled.data(), polled.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));

    Status accepted = accept_callers();
    if (!accepted.ok()) return accepted;
    hear_callers();
    for (Rank rank = 0; rank < join_.ranks; ++rank) {
      if (rank == join_.rank || peers_[index(rank)].stage == Stage::Absent) continue;
      Status status = hear(rank);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status accept_callers() {
    constexpr std::size_t kSpare = 16;  // callers that never say who they are do not pile up
    while (listener_.open()) {
      base::Fd socket{accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
      if (!socket.open()) {
        if (errno != EMFILE && errno != ENFILE) return {};  // nobody there, or gone again
        return {Code::NoMemory, base::format("{}: too many open files: raise ulimit -n", who())};
      }
      const auto pid = trusted_peer(socket.number());
      if (!pid) continue;
      if (callers_.size() >= peers_.size() + kSpare) callers_.erase(callers_.begin());
      callers_.push_back({std::move(socket), *pid});
    }
    return {};
  }

  void hear_callers() {
    std::erase_if(callers_, [this](Caller& caller) {
      ReceivedPacket arrival = receive_packet(caller.socket.number());
      const bool nothing = arrival.state == ReceivedPacket::State::Nothing;
      if (arrival.state == ReceivedPacket::State::Packet) admit(caller, std::move(arrival));
      return !nothing;
    });
  }

  void admit(Caller& caller, ReceivedPacket&& arrival) {
    const Packet& hello = arrival.packet;
    const std::string why = reason_to_refuse(hello, arrival.has_gift());
    if (!why.empty()) {
      last_refused_ = base::format("process {} was refused: {}", caller.pid, why);
      Packet refusal{.kind = PacketKind::Refusal, .rank = join_.rank};
      refusal.set_words(why);
      (void)send_packet(caller.socket.number(), refusal);
      return;
    }
    // Too many descriptors in flight, perhaps: hang up, and it calls again.
    if (!send_packet(caller.socket.number(), introduction(PacketKind::Welcome), &gift_)) return;
    Peer& peer = peers_[index(hello.rank)];
    peer.link.socket = std::move(caller.socket);
    peer.link.pid = caller.pid;
    link(peer, std::move(arrival));
  }

  std::string reason_to_refuse(const Packet& hello, bool has_gift) const {
    if (hello.kind != PacketKind::Hello) return "it does not speak as a rank does";
    if (hello.words() != join_.token) return "its token is not that of this job";
    if (!has_gift)
      return "its memory did not arrive; is the limit of open files (ulimit -n) too low?";
    if (hello.ranks != join_.ranks)
      return base::format("it counts {} ranks, not {}", hello.ranks, join_.ranks);
    if (hello.rank <= join_.rank || hello.rank >= join_.ranks)
      return base::format("rank {} does not call here", hello.rank);
    if (peers_[index(hello.rank)].stage != Stage::Absent)
      return base::format("rank {} has joined already", hello.rank);
    return "";
  }

  static void link(Peer& peer, ReceivedPacket&& arrival) {
    peer.link.process = process_at(peer.link.socket.number(), peer.link.pid);
    peer.link.memory = std::move(arrival.fds[0]);
    peer.link.waker = std::move(arrival.fds[1]);
    peer.link.word = arrival.packet.word;
    peer.stage = Stage::Linked;
  }

  Status hear(Rank rank) {
    Peer& peer = peers_[index(rank)];
    if (peer.stage == Stage::Ready) {
      pollfd polled{peer.link.socket.number(), 0, 0};
      if (!peer.left && poll(&polled, 1, 0) > 0) {
        peer.left = true;
        parting_ = std::min(parting_, Clock::now() + kPartGrace);
      }
      return {};
    }
    ReceivedPacket arrival = receive_packet(peer.link.socket.number());
    if (arrival.state == ReceivedPacket::State::Nothing) return {};
    const Packet& packet = arrival.packet;
    if (arrival.state == ReceivedPacket::State::Closed) {
      if (peer.stage != Stage::Called) return lost(rank);
      peer.stage = Stage::Absent;  // it hung up, or was not there for long: call again
    } else if (packet.kind == PacketKind::Refusal) {
      return {Code::InvalidArgument,
              base::format("{}: rank {} refused this process: {}", who(), rank, packet.words())};
    } else if (packet.kind == PacketKind::GivesUp) {
      return {Code::PeerLost, base::format("{}: rank {} gave up: {}", who(), rank, packet.words())};
    } else if (packet.kind == PacketKind::Ready && peer.stage == Stage::Linked) {
      peer.stage = Stage::Ready;
    } else if (packet.kind == PacketKind::Welcome && peer.stage == Stage::Called &&
               packet.rank == rank && packet.words() == join_.token && arrival.has_gift()) {
      link(peer, std::move(arrival));
    } else {
      return {Code::PeerLost,
              base::format("{}: what answers as rank {} is not a rank of this job", who(), rank)};
    }
    return {};
  }

  void say_ready() {
    listener_
        .reset();  // before Ready: a peer's next joining under this name must not meet this one
    callers_.clear();
    for (Rank rank = 0; rank < join_.ranks; ++rank) {
      if (rank != join_.rank) {
        (void)send_packet(peers_[index(rank)].link.socket.number(),
                          {.kind = PacketKind::Ready, .rank = join_.rank});
      }
    }
    said_ready_ = true;
  }

  void give_up(const std::string& why) {
    Packet packet{.kind = PacketKind::GivesUp, .rank = join_.rank};
    packet.set_words(why);
    for (const Peer& peer : peers_) {
      if (peer.stage != Stage::Absent) (void)send_packet(peer.link.socket.number(), packet);
    }
  }

  Status too_late() const {
    for (Rank rank = 0; rank < join_.ranks; ++rank) {
      if (peers_[index(rank)].left) return lost(rank);
    }
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < join_.ranks; ++rank) {
      const Stage stage = peers_[index(rank)].stage;
      if (rank != join_.rank && (said_ready_ ? stage != Stage::Ready : stage < Stage::Linked))
        missing.push_back(rank);
    }
    std::string text = base::format("{}: {} of {} ranks joined, waiting for rank{} {}", who(),
                                    peers_.size() - missing.size(), join_.ranks,
                                    missing.size() == 1 ? "" : "s", base::join(missing, ", "));
    if (!last_refused_.empty()) text += base::format(" ({})", last_refused_);
    return {Code::DeadlineExceeded, text};
  }

  Status lost(Rank rank) const {
    return {Code::PeerLost,
            base::format("{}: rank {} (process {}) was lost before all {} ranks had joined", who(),
                         rank, peers_[index(rank)].link.pid, join_.ranks)};
  }

  bool all(Stage stage) const {
    for (Rank rank = 0; rank < join_.ranks; ++rank) {
      if (rank != join_.rank && peers_[index(rank)].stage < stage) return false;
    }
    return true;
  }

  Packet introduction(PacketKind kind) const {
    Packet packet{.kind = kind, .rank = join_.rank, .ranks = join_.ranks, .word = word_};
    packet.set_words(join_.token);
    return packet;
  }

  std::string who() const {
    return base::format("rank {} of job {}", join_.rank, base::quote(join_.job));
  }
  Clock::time_point deadline() const { return std::min(join_.deadline, parting_); }
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

  const ShmOptions& join_;
  SharedDescriptors gift_;
  std::uint64_t word_;
  std::vector<Peer> peers_;  // by rank; the own one stays absent
  std::vector<Caller> callers_;
  base::Fd listener_;
  bool said_ready_ = false;
  Clock::time_point parting_ = Clock::time_point::max();
  std::string last_refused_;
};

}  // namespace

Result<std::vector<MeshLink>> join_mesh(const ShmOptions& join, const SharedDescriptors& gift,
                                        std::uint64_t word) {
  constexpr int kMostRanks = 4096;
  constexpr std::size_t kLongestToken = 255;  // what a Packet holds
  if (join.ranks < 1 || join.ranks > kMostRanks || join.rank < 0 || join.rank >= join.ranks) {
    return Status{
        Code::InvalidArgument,
        base::format("rank {} of {} cannot join: ranks count from 0, and a node has 1 to {}",
                     join.rank, join.ranks, kMostRanks)};
  }
  if (join.token.size() > kLongestToken) {
    return Status{Code::InvalidArgument,
                  base::format("the job's token has {} characters, {} at most are allowed",
                               join.token.size(), kLongestToken)};
  }
  Joining joining{join, gift, word};
  Status status = joining.run();
  if (!status.ok()) return status;
  return std::move(joining).links();
}

}  // namespace sluice::transport
