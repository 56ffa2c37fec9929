#include "transport/memory/node_join.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "transport/memory/process_status.h"

namespace sluice::transport {

void Packet::set_text(std::string_view text) {
  reason.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), reason.size() - 1), reason.begin());
}

bool send_packet(int socket, const Packet& packet, int descriptor) {
  iovec data{const_cast<Packet*>(&packet), sizeof packet};  // NOLINT: sendmsg() only reads it
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
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
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    // A reset is reported once, before the packets that the peer had sent and the end of file.
    received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return result;

  const cmsghdr* const header = received > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    result.descriptor.reset(descriptor);
  }
  const bool valid = received == static_cast<ssize_t>(sizeof(Packet)) &&
                     result.packet.magic == Packet::kMagic && result.packet.reason.back() == '\0';
  result.state = valid ? ReceivedPacket::State::Packet : ReceivedPacket::State::Closed;
  return result;
}

std::vector<Rank> NodeTable::absent() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if ((*this)[rank].presence.load(std::memory_order_acquire) == Presence::Absent)
      ranks.push_back(rank);
  }
  return ranks;
}

std::string node_name(const ShmOptions& options) {
  return "sluice/" + secret_name(options.token, base::format("{}/{}", getuid(), options.job));
}

namespace {

constexpr auto kFirstRetry = std::chrono::milliseconds{2};  // between attempts to reach rank 0
constexpr auto kLongestRetry = std::chrono::milliseconds{50};
constexpr auto kLongestPoll = std::chrono::minutes{1};
constexpr std::size_t kMostUnknown = 16;  // pending connections beyond one for each rank

struct UnixAddress {
  sockaddr_un name{};
  socklen_t bytes = 0;

  explicit UnixAddress(std::string_view text) {
    name.sun_family = AF_UNIX;
    std::copy(text.begin(), text.end(), name.sun_path + 1);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&name);  // NOLINT: as the system calls want it
  }
};

base::Fd new_socket(int type) {
  return base::Fd{socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
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

// 0: unknown
std::uint64_t own_pid_namespace() {
  struct stat own {};
  return stat("/proc/self/ns/pid", &own) == 0 ? own.st_ino : 0;
}

std::string name_of(const ShmOptions& options) {
  return base::format("rank {} of job {}", options.rank, base::quote(options.job));
}

Status failed_to(const ShmOptions& options, std::string_view what) {
  const std::string limit = errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "";
  return {errno == EMFILE || errno == ENFILE || errno == ENOMEM ? Code::NoMemory : Code::PeerLost,
          base::format("{}: cannot {}: {}{}", name_of(options), what, std::strerror(errno), limit)};
}

Status too_late(const ShmOptions& options, const std::vector<Rank>& missing,
                const std::string& last_refused) {
  std::string text = base::format("{}: {} of {} ranks joined, waiting for {}", name_of(options),
                                  static_cast<std::size_t>(options.ranks) - missing.size(),
                                  options.ranks, show_ranks(missing));
  if (missing.size() + 1 == static_cast<std::size_t>(options.ranks))
    text += "; ranks find each other only with the same SLUICE_JOB and SLUICE_TOKEN";
  if (!last_refused.empty()) text += base::format(" ({})", last_refused);
  return {Code::DeadlineExceeded, text};
}

Transcript transcript_of(const Packet& hello, const Nonce& challenge) {
  return {"node", std::as_bytes(std::span{&hello, 1}), challenge};
}

// Maps rank 0's first block.
Status map_first(const ShmOptions& options, NodeMembership& node) {
  node.data = map_range(node.file.number(), 0, node.first);
  if (node.data == nullptr) return failed_to(options, "map the memory of rank 0");
  node.table = NodeTable{node.data, options.ranks};
  return {};
}

// Opens the wake socket and writes this rank into the table.
Status enter(const ShmOptions& options, NodeMembership& node) {
  const std::string name = "sluice/" + random_name();
  const UnixAddress own{name};
  node.wake = new_socket(SOCK_DGRAM);
  if (!node.wake.open() || bind(node.wake.number(), own.address(), own.bytes) != 0)
    return failed_to(options, "open a socket");
  NodeMember& self = node.table[options.rank];
  self.pid = getpid();
  const std::optional<ProcessStatus> process = status_of_process(self.pid);
  if (process) self.started = process->started;
  self.pid_namespace = own_pid_namespace();
  std::copy(name.begin(), name.end(), self.wake_name.begin());
  self.presence.store(Presence::Joined, std::memory_order_release);
  return {};
}

// Rank 0: admits the others.
class NodeHost {
 public:
  NodeHost(const ShmOptions& options, NodeMembership& node)
      : options_{options},
        node_{node},
        missing_{options.ranks - 1},
        pending_{static_cast<std::size_t>(options.ranks) + kMostUnknown, std::chrono::hours{24}} {
    node_.connections.resize(static_cast<std::size_t>(options.ranks));
  }

  Status run() {
    Status status = listen_for_others();
    while (status.ok() && missing_ > 0) {
      status = Clock::now() < options_.deadline ? wait_and_read()
                                                : too_late(options_, absent(), last_refused_);
    }
    // The listener closes before Ready is sent: a peer may leave and join again under the same
    // name.
    listener_.reset();
    pending_.clear();
    Packet verdict{.kind = status.ok() ? PacketKind::Ready : PacketKind::Failed};
    verdict.set_text(status.message());
    for (const base::Fd& connection : node_.connections) {
      if (connection.open()) (void)send_packet(connection.number(), verdict);
    }
    return status;
  }

 private:
  struct Client {  // a connection that has not proven the token
    base::Fd socket;
    pid_t pid = 0;
    std::optional<Packet> hello;
    Nonce challenge{};
    int fd() const { return socket.number(); }
  };

  Status listen_for_others() {
    if (options_.ranks == 1) return {};
    listener_ = new_socket(SOCK_SEQPACKET);
    const UnixAddress own{node_name(options_)};
    if (bind(listener_.number(), own.address(), own.bytes) == 0 &&
        listen(listener_.number(), SOMAXCONN) == 0) {
      return {};
    }
    if (errno != EADDRINUSE) return failed_to(options_, "listen on a socket");
    return {Code::InvalidArgument,
            base::format("{}: another process of this machine is rank 0 already; give every rank a "
                         "number of its own",
                         name_of(options_))};
  }

  // Reads only from sockets with an event: among hundreds of ranks a system call for each of them
  // would take most of the start.
  Status wait_and_read() {
    polled_.clear();
    ranks_.clear();
    for (Rank rank = 1; rank < options_.ranks; ++rank) {
      if (!connection(rank).open()) continue;
      polled_.push_back({connection(rank).number(), POLLIN, 0});
      ranks_.push_back(rank);
    }
    polled_.push_back({listener_.number(), POLLIN, 0});
    pending_.add_to(polled_);
    if (poll(polled_.data(), polled_.size(), poll_timeout(options_.deadline, kLongestPoll)) <= 0)
      return {};
    pending_.note_events(polled_);
    Status status = pending_.accept_all(listener_, name_of(options_),
                                        [](base::Fd socket) -> std::optional<Client> {
                                          const auto pid = peer_of_same_user(socket.number());
                                          if (!pid) return std::nullopt;
                                          return Client{.socket = std::move(socket), .pid = *pid};
                                        });
    if (!status.ok()) return status;
    pending_.read_all([this](Client& client) { return is_settled(client); });
    for (std::size_t i = 0; i < ranks_.size() && status.ok(); ++i) {
      if (polled_[i].revents != 0) status = read_from(ranks_[i]);
    }
    return status;
  }

  // True: the client is admitted, or its connection is to be closed.
  bool is_settled(Client& client) {
    const ReceivedPacket received = receive_packet(client.fd());
    if (received.state == ReceivedPacket::State::Nothing) return false;
    if (received.state == ReceivedPacket::State::Closed) return true;
    if (!client.hello && received.packet.kind == PacketKind::Hello) {
      client.hello = received.packet;
      client.challenge = new_nonce();
      return !send_packet(client.fd(), {.kind = PacketKind::Challenge, .nonce = client.challenge});
    }
    const std::string why = refusal_of(client, received.packet);
    if (why.empty()) {
      admit(client);
    } else {
      last_refused_ = base::format("process {} was refused: {}", client.pid, why);
      Packet refusal{.kind = PacketKind::Refusal};
      refusal.set_text(why);
      (void)send_packet(client.fd(), refusal);
    }
    return true;
  }

  std::string refusal_of(const Client& client, const Packet& packet) const {
    if (!client.hello) return "it sent no hello";
    const Packet& hello = *client.hello;
    if (packet.kind != PacketKind::Proof ||
        !is_proven(options_.token, Side::Client, transcript_of(hello, client.challenge),
                   packet.proof))
      return std::string{kWrongToken};
    std::string why = reason_to_refuse({hello.rank, hello.ranks}, options_.ranks);
    if (!why.empty()) return why;
    if (hello.rank == 0 || connection(hello.rank).open())
      return base::format("rank {} has joined already", hello.rank);
    return "";
  }

  // This can fail because too many descriptors are in flight. The client then connects again.
  void admit(Client& client) {
    const auto proof =
        prove(options_.token, Side::Server, transcript_of(*client.hello, client.challenge));
    if (!proof || !send_packet(client.fd(),
                               {.kind = PacketKind::Welcome,
                                .ranks = options_.ranks,
                                .first_pages = node_.first.count,
                                .proof = *proof},
                               node_.file.number()))
      return;
    connection(client.hello->rank) = std::move(client.socket);
  }

  Status read_from(Rank rank) {
    const ReceivedPacket received = receive_packet(connection(rank).number());
    if (received.state == ReceivedPacket::State::Nothing) return {};
    if (received.state == ReceivedPacket::State::Closed) {
      return {Code::PeerLost, base::format("{}: rank {} was lost before all {} ranks had joined",
                                           name_of(options_), rank, options_.ranks)};
    }
    if (received.packet.kind == PacketKind::Failed) {
      return {Code::PeerLost, base::format("{}: rank {} gave up: {}", name_of(options_), rank,
                                           received.packet.text())};
    }
    if (received.packet.kind == PacketKind::Joined) --missing_;
    return {};
  }

  std::vector<Rank> absent() const { return node_.table.absent(); }
  base::Fd& connection(Rank rank) const {
    return node_.connections[static_cast<std::size_t>(rank)];
  }

  const ShmOptions& options_;
  NodeMembership& node_;
  int missing_;
  std::vector<pollfd> polled_;
  std::vector<Rank> ranks_;  // of the first entries of polled_
  PendingConnections<Client> pending_;
  base::Fd listener_;
  std::string last_refused_;
};

// The other ranks.
class NodeGuest {
 public:
  NodeGuest(const ShmOptions& options, NodeMembership& node) : options_{options}, node_{node} {}

  Status run() {
    Status status;
    while (status.ok() && stage_ != Stage::Ready) {
      status = Clock::now() < options_.deadline ? advance() : too_late(options_, missing(), "");
    }
    if (!status.ok() && stage_ == Stage::Joined) {
      Packet packet{.kind = PacketKind::Failed, .rank = options_.rank};
      packet.set_text(status.message());
      (void)send_packet(socket_.number(), packet);
    }
    node_.connections.push_back(std::move(socket_));
    return status;
  }

 private:
  enum class Stage : std::uint8_t { Absent, HelloSent, ProofSent, Joined, Ready };

  Status advance() {
    if (stage_ == Stage::Absent) return connect_to_host();
    pollfd polled{socket_.number(), POLLIN, 0};
    if (poll(&polled, 1, poll_timeout(options_.deadline, kLongestPoll)) <= 0) return {};
    return read();
  }

  Status connect_to_host() {
    if (Clock::now() < next_try_) {
      poll(nullptr, 0, poll_timeout(std::min(next_try_, options_.deadline), kLongestRetry));
      return {};
    }
    next_try_ = Clock::now() + retry_;
    retry_ = std::min(2 * retry_, kLongestRetry);
    socket_ = new_socket(SOCK_SEQPACKET);
    if (!socket_.open()) return failed_to(options_, "open a socket to rank 0");
    const UnixAddress theirs{node_name(options_)};
    if (connect(socket_.number(), theirs.address(), theirs.bytes) != 0) return {};
    if (!peer_of_same_user(socket_.number())) {
      return {Code::PeerLost,
              base::format("{}: a process of another user poses as rank 0", name_of(options_))};
    }
    hello_ = {.kind = PacketKind::Hello,
              .rank = options_.rank,
              .ranks = options_.ranks,
              .nonce = new_nonce()};
    if (send_packet(socket_.number(), hello_)) stage_ = Stage::HelloSent;
    return {};
  }

  Status read() {
    ReceivedPacket received = receive_packet(socket_.number());
    if (received.state == ReceivedPacket::State::Nothing) return {};
    const Packet& packet = received.packet;
    if (received.state == ReceivedPacket::State::Closed) {
      if (stage_ == Stage::Joined) {
        return {Code::PeerLost, base::format("{}: rank 0 was lost before all {} ranks had joined",
                                             name_of(options_), options_.ranks)};
      }
      stage_ = Stage::Absent;  // connect again
    } else if (packet.kind == PacketKind::Refusal) {
      return {Code::InvalidArgument, base::format("{}: rank 0 refused this process: {}",
                                                  name_of(options_), packet.text())};
    } else if (packet.kind == PacketKind::Failed) {
      return {Code::PeerLost,
              base::format("{}: rank 0 gave up: {}", name_of(options_), packet.text())};
    } else if (packet.kind == PacketKind::Ready && stage_ == Stage::Joined) {
      stage_ = Stage::Ready;
    } else if (packet.kind == PacketKind::Challenge && stage_ == Stage::HelloSent) {
      challenge_ = packet.nonce;
      const auto proof = prove(options_.token, Side::Client, transcript_of(hello_, challenge_));
      const bool sent = proof && send_packet(socket_.number(), {.kind = PacketKind::Proof,
                                                                .rank = options_.rank,
                                                                .ranks = options_.ranks,
                                                                .proof = *proof});
      stage_ = sent ? Stage::ProofSent : Stage::Absent;
    } else if (packet.kind == PacketKind::Welcome && stage_ == Stage::ProofSent &&
               is_proven(options_.token, Side::Server, transcript_of(hello_, challenge_),
                         packet.proof)) {
      return join(std::move(received));
    } else {
      return {Code::PeerLost,
              base::format("{}: the process that answers as rank 0 is not a rank of this job",
                           name_of(options_))};
    }
    return {};
  }

  Status join(ReceivedPacket&& received) {
    if (!received.descriptor.open()) {
      return {Code::NoMemory,
              base::format("{}: the memory of rank 0 did not arrive; is the limit of open files "
                           "(ulimit -n) too low?",
                           name_of(options_))};
    }
    node_.file = std::move(received.descriptor);
    node_.first = {0, received.packet.first_pages};
    Status status = map_first(options_, node_);
    if (status.ok()) status = enter(options_, node_);
    if (!status.ok()) return status;
    stage_ = Stage::Joined;
    if (!send_packet(socket_.number(), {.kind = PacketKind::Joined, .rank = options_.rank}))
      return failed_to(options_, "tell rank 0 that it has joined");
    return {};
  }

  std::vector<Rank> missing() const {
    if (node_.data != nullptr) return node_.table.absent();
    std::vector<Rank> others;
    for (Rank rank = 0; rank < options_.ranks; ++rank) {
      if (rank != options_.rank) others.push_back(rank);
    }
    return others;
  }

  const ShmOptions& options_;
  NodeMembership& node_;
  Stage stage_ = Stage::Absent;
  base::Fd socket_;
  Packet hello_;
  Nonce challenge_{};
  Clock::time_point next_try_;
  std::chrono::milliseconds retry_ = kFirstRetry;
};

}  // namespace

void send_wake(int socket, const NodeMember& member) {
  const UnixAddress to{member.wake_name.data()};
  // Where its queue is full, the socket is readable already.
  (void)sendto(socket, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL, to.address(), to.bytes);
}

base::Fd process_of(const NodeMember& member) {
  static const std::uint64_t kOwnNamespace = own_pid_namespace();
  if (member.pid_namespace != kOwnNamespace || kOwnNamespace == 0) return base::Fd{};
  base::Fd process{static_cast<int>(syscall(SYS_pidfd_open, member.pid, 0))};
  // The number may belong to a later process.
  const std::optional<ProcessStatus> now = status_of_process(member.pid);
  return process.open() && now && now->started == member.started ? std::move(process) : base::Fd{};
}

Result<NodeMembership> join_node(const ShmOptions& options, std::size_t first_bytes) {
  constexpr int kMostRanks = 4096;
  Status status = check_join(options.rank, options.ranks, kMostRanks, options.token);
  if (!status.ok()) return status;
  NodeMembership node;
  if (options.rank == 0) {
    Result<base::Fd> file = create_arena_file(options.ranks);
    if (!file.ok()) return file.status();
    node.file = std::move(file).value();
    node.first = pages_for(NodeTable::bytes(options.ranks) + first_bytes);
    status = map_first(options, node);
    if (status.ok()) status = enter(options, node);
    if (status.ok()) status = NodeHost{options, node}.run();
  } else {
    status = NodeGuest{options, node}.run();
  }
  if (status.ok()) return node;
  if (node.data != nullptr) unmap_range(node.data, node.first);
  return status;
}

}  // namespace sluice::transport
