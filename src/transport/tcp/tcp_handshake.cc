#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/tcp_liveness.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::transport {
namespace {

constexpr auto kRetry = std::chrono::milliseconds{20};
constexpr auto kLongestPoll = std::chrono::milliseconds{100};

class TcpHandshake {
 public:
  TcpHandshake(const TcpJoin& join, TcpListener& listener, const std::string& own_address)
      : join_{join},
        listener_{listener},
        own_{SocketAddress::numeric(own_address, 0)},
        sockets_(join.addresses.size()) {
    for (Rank peer = 0; peer < join.rank; ++peer) {
      if (!join.is_remote(peer)) continue;
      attempts_.push_back({.peer = peer, .stream = TcpStream::Messages});
      attempts_.push_back({.peer = peer, .stream = TcpStream::Status});
    }
  }

  Status run() {
    while (true) {
      Status status = connect_to_lower_ranks();
      if (!status.ok()) return status;
      accept_admitted();
      const std::vector<Rank> missing = missing_ranks();
      if (missing.empty()) return {};
      if (Clock::now() >= join_.wait.deadline) return too_late(missing);
      status = check_sometimes(missing.front());
      if (!status.ok()) return status;
      wait();
      status = listener_.pending.accept_all(
          listener_.socket, base::format("rank {}", join_.rank),
          [](base::Fd socket) { return TcpClient{.socket = std::move(socket)}; });
      if (!status.ok()) return status;
      read_answers();
    }
  }

  std::vector<TcpSockets> sockets() && { return std::move(sockets_); }

 private:
  // A connection to a lower rank.
  struct Attempt {
    enum class Stage : std::uint8_t { Idle, Connecting, HelloSent, ProofSent, Done };
    Rank peer = 0;
    TcpStream stream = TcpStream::Messages;
    Stage stage = Stage::Idle;
    base::Fd socket;
    Clock::time_point next_try;
    TcpHello hello;
    Arriving<TcpChallenge> challenge;
    Arriving<TokenProof> proof;
  };

  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

  Status connect_to_lower_ranks() {
    const auto now = Clock::now();
    for (Attempt& attempt : attempts_) {
      if (attempt.stage != Attempt::Stage::Idle || now < attempt.next_try) continue;
      attempt.next_try = now + kRetry;
      const TcpAddress& theirs = join_.addresses[index(attempt.peer)];
      const auto to = SocketAddress::numeric(theirs.host, theirs.port);
      if (!to) {
        return {Code::InvalidInput,
                base::format("rank {} sent the address {}, which is not numeric", attempt.peer,
                             theirs.host)};
      }
      attempt.socket = new_stream_socket(to->family());
      if (!attempt.socket.open()) {
        return {Code::NoMemory,
                base::format("rank {}: cannot open a socket to rank {}: {}{}", join_.rank,
                             attempt.peer, std::strerror(errno),
                             errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "")};
      }
      // Outgoing connections use the chosen interface as well.
      if (own_) {
        set_option(attempt.socket.number(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
        (void)bind(attempt.socket.number(), own_->address(), own_->bytes());
      }
      if (connect(attempt.socket.number(), to->address(), to->bytes()) == 0 ||
          errno == EINPROGRESS) {
        attempt.stage = Attempt::Stage::Connecting;
      }
    }
    return {};
  }

  Status check_sometimes(Rank missing) {
    const auto now = Clock::now();
    if (now < next_check_) return {};
    next_check_ = now + kLongestPoll;
    return join_.wait.check(missing);
  }

  void wait() {
    std::vector<pollfd> polled{{listener_.socket.number(), POLLIN, 0}};
    auto until = join_.wait.deadline;
    for (const Attempt& attempt : attempts_) {
      if (attempt.stage == Attempt::Stage::Idle) until = std::min(until, Clock::now() + kRetry);
      if (attempt.stage == Attempt::Stage::Connecting)
        polled.push_back({attempt.socket.number(), POLLOUT, 0});
      if (attempt.stage == Attempt::Stage::HelloSent || attempt.stage == Attempt::Stage::ProofSent)
        polled.push_back({attempt.socket.number(), POLLIN, 0});
    }
    listener_.pending.add_to(polled);
    poll(polled.data(), polled.size(), poll_timeout(until, kLongestPoll));
    listener_.pending.note_events(polled);
  }

  void read_answers() {
    for (Attempt& attempt : attempts_) {
      if (attempt.stage == Attempt::Stage::Connecting) send_hello(attempt);
      if (attempt.stage == Attempt::Stage::HelloSent) answer_challenge(attempt);
      if (attempt.stage == Attempt::Stage::ProofSent) read_proof(attempt);
    }
  }

  void send_hello(Attempt& attempt) {
    pollfd polled{attempt.socket.number(), POLLOUT, 0};
    if (poll(&polled, 1, 0) == 0) return;
    int error = 0;
    socklen_t bytes = sizeof error;
    getsockopt(attempt.socket.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    attempt.hello = {.network = join_.network,
                     .from = join_.rank,
                     .to = attempt.peer,
                     .ranks = join_.ranks(),
                     .stream = attempt.stream,
                     .nonce = new_nonce()};
    attempt.challenge = {};
    attempt.proof = {};
    const bool sent = error == 0 && send_whole(attempt.socket.number(), attempt.hello);
    attempt.stage = sent ? Attempt::Stage::HelloSent : Attempt::Stage::Idle;
  }

  void answer_challenge(Attempt& attempt) {
    const auto state = attempt.challenge.read(attempt.socket.number());
    if (state == Arriving<TcpChallenge>::State::Incomplete) return;
    const TcpChallenge& challenge = attempt.challenge.value();
    const std::optional<TokenProof> proof =
        prove(listener_.token, Side::Client, transcript_of(attempt.hello, challenge.nonce));
    const bool answered = state == Arriving<TcpChallenge>::State::Complete &&
                          challenge.magic == TcpHello::kMagic && proof &&
                          send_whole(attempt.socket.number(), *proof);
    attempt.stage = answered ? Attempt::Stage::ProofSent : Attempt::Stage::Idle;
    refused_ += answered ? 0 : 1;
  }

  void read_proof(Attempt& attempt) {
    const auto state = attempt.proof.read(attempt.socket.number());
    if (state == Arriving<TokenProof>::State::Incomplete) return;
    const Transcript transcript = transcript_of(attempt.hello, attempt.challenge.value().nonce);
    if (state == Arriving<TokenProof>::State::Complete &&
        is_proven(listener_.token, Side::Server, transcript, attempt.proof.value())) {
      attempt.stage = Attempt::Stage::Done;
      keep(attempt.peer, attempt.stream, std::move(attempt.socket));
    } else {
      attempt.stage = Attempt::Stage::Idle;
      ++refused_;
    }
  }

  // The messages of a handshake are short, and the send buffer is empty, so it takes them whole.
  template <class Value>
  static bool send_whole(int socket, const Value& value) {
    return send(socket, &value, sizeof value, MSG_NOSIGNAL) == sizeof value;
  }

  // Admits the connections that know the token. Those of this network become its sockets; those of
  // other networks stay in the listener.
  void accept_admitted() {
    listener_.pending.read_all([this](TcpClient& client) { return is_settled(client); });
    std::erase_if(listener_.admitted, [this](TcpClient& client) {
      const TcpHello& hello = client.hello.value();
      if (hello.network != join_.network) return false;
      const bool expected = hello.to == join_.rank && hello.ranks == join_.ranks() &&
                            hello.from > join_.rank && hello.from < join_.ranks() &&
                            join_.is_remote(hello.from) && hello.stream <= TcpStream::Status &&
                            !socket_of(hello.from, hello.stream).open();
      const std::optional<TokenProof> proof =
          prove(listener_.token, Side::Server, transcript_of(hello, *client.challenge));
      if (expected && proof && send_whole(client.fd(), *proof))
        keep(hello.from, hello.stream, std::move(client.socket));
      return true;
    });
  }

  // True: the connection is admitted, or is to be closed.
  bool is_settled(TcpClient& client) {
    using HelloState = Arriving<TcpHello>::State;
    using ProofState = Arriving<TokenProof>::State;
    if (!client.challenge) {
      const auto state = client.hello.read(client.fd());
      if (state == HelloState::Incomplete) return false;
      if (state == HelloState::Closed || client.hello.value().magic != TcpHello::kMagic)
        return true;
      client.challenge = new_nonce();
      return !send_whole(client.fd(), TcpChallenge{.nonce = *client.challenge});
    }
    const auto state = client.proof.read(client.fd());
    if (state == ProofState::Incomplete) return false;
    const Transcript transcript = transcript_of(client.hello.value(), *client.challenge);
    if (state == ProofState::Complete &&
        is_proven(listener_.token, Side::Client, transcript, client.proof.value()))
      listener_.admitted.push_back(std::move(client));
    return true;
  }

  base::Fd& socket_of(Rank peer, TcpStream stream) {
    TcpSockets& sockets = sockets_[index(peer)];
    return stream == TcpStream::Messages ? sockets.messages : sockets.status;
  }

  void keep(Rank peer, TcpStream stream, base::Fd socket) {
    set_mesh_options(socket.number());
    watch_idle_host(socket.number(), join_.longest_silence);
    socket_of(peer, stream) = std::move(socket);
  }

  std::vector<Rank> missing_ranks() const {
    std::vector<Rank> ranks;
    for (Rank peer = 0; peer < join_.ranks(); ++peer) {
      const TcpSockets& sockets = sockets_[index(peer)];
      if (join_.is_remote(peer) && peer != join_.rank &&
          (!sockets.messages.open() || !sockets.status.open()))
        ranks.push_back(peer);
    }
    return ranks;
  }

  Status too_late(const std::vector<Rank>& missing) const {
    const TcpAddress& first = join_.addresses[index(missing.front())];
    return {Code::DeadlineExceeded,
            base::format("rank {}: no connection with {} (rank {} is at {}, port {}{})", join_.rank,
                         show_ranks(missing), missing.front(), first.host, first.port,
                         refused_ > 0 ? "; some connections were closed" : "; is the port open?")};
  }

  const TcpJoin& join_;
  TcpListener& listener_;
  std::optional<SocketAddress> own_;
  std::vector<TcpSockets> sockets_;
  std::vector<Attempt> attempts_;
  Clock::time_point next_check_;
  int refused_ = 0;
};

}  // namespace

Result<std::vector<TcpSockets>> connect_tcp(const TcpJoin& join, TcpListener& listener,
                                            const std::string& own_address) {
  TcpHandshake handshake{join, listener, own_address};
  Status status = handshake.run();
  if (!status.ok()) return status;
  return std::move(handshake).sockets();
}

}  // namespace sluice::transport
