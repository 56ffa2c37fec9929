#include "transport/tcp/tcp_mesh.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "base/text.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::transport {
namespace {

constexpr auto kRetry = std::chrono::milliseconds{20};
constexpr auto kSilentCaller = std::chrono::seconds{5};
constexpr std::size_t kMostStrangers = 64;  // callers that have not said who they are

// As much of it as a hello has room for.
bool knows_token(const TcpHello& hello, std::string_view token) {
  return base::equal_in_constant_time({hello.token, strnlen(hello.token, sizeof hello.token)},
                                      token.substr(0, sizeof hello.token - 1));
}

class Joining {
 public:
  Joining(const TcpJoin& join, TcpListener& door, const std::string& own_address)
      : join_{join},
        door_{door},
        own_{SocketAddress::numeric(own_address, 0)},
        links_(join.addresses.size()) {
    for (Rank peer = 0; peer < join.rank; ++peer) {
      if (!join.is_remote(peer)) continue;
      calls_.push_back({.peer = peer, .use = TcpUse::Messages});
      calls_.push_back({.peer = peer, .use = TcpUse::Notes});
    }
  }

  Status run() {
    while (true) {
      if (Status status = place_calls(); !status.ok()) return status;
      take_callers();
      if (all_linked()) return {};
      if (Clock::now() >= join_.deadline) return too_late();
      wait();
      accept_callers();
      hear_answers();
    }
  }

  std::vector<TcpLink> links() && { return std::move(links_); }

 private:
  struct Call {
    enum class Stage : std::uint8_t { Absent, Connecting, Asked, Done };
    Rank peer = 0;
    TcpUse use = TcpUse::Messages;
    Stage stage = Stage::Absent;
    base::Fd socket;
    Clock::time_point next_try;
  };

  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

  Status place_calls() {
    const auto now = Clock::now();
    for (Call& call : calls_) {
      if (call.stage != Call::Stage::Absent || now < call.next_try) continue;
      call.next_try = now + kRetry;
      const TcpAddress& theirs = join_.addresses[index(call.peer)];
      const auto to = SocketAddress::numeric(theirs.host, theirs.port);
      if (!to) {
        return {Code::InvalidInput,
                base::format("rank {} says that it is at {}, which is no address", call.peer,
                             theirs.host)};
      }
      call.socket = new_stream_socket(to->family());
      if (!call.socket.open()) {
        return {Code::NoMemory,
                base::format("rank {}: no socket for rank {}: {}{}", join_.rank, call.peer,
                             std::strerror(errno),
                             errno == EMFILE ? ": raise the limit of open files (ulimit -n)" : "")};
      }
      // What leaves goes through the interface that was chosen.
      if (own_) {
        set_option(call.socket.number(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
        (void)bind(call.socket.number(), own_->address(), own_->bytes());
      }
      if (connect(call.socket.number(), to->address(), to->bytes()) == 0 || errno == EINPROGRESS)
        call.stage = Call::Stage::Connecting;
    }
    return {};
  }

  void wait() {
    std::vector<pollfd> polled{{door_.listener.number(), POLLIN, 0}};
    bool absent = false;
    for (const Call& call : calls_) {
      absent = absent || call.stage == Call::Stage::Absent;
      if (call.stage == Call::Stage::Connecting)
        polled.push_back({call.socket.number(), POLLOUT, 0});
      if (call.stage == Call::Stage::Asked) polled.push_back({call.socket.number(), POLLIN, 0});
    }
    for (const TcpListener::Caller& caller : door_.callers) {
      if (caller.heard < sizeof caller.hello) polled.push_back({caller.socket.number(), POLLIN, 0});
    }
    const auto until = absent ? std::min(join_.deadline, Clock::now() + kRetry) : join_.deadline;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    poll(polled.data(), polled.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000)));
  }

  void hear_answers() {
    for (Call& call : calls_) {
      if (call.stage == Call::Stage::Connecting) introduce(call);
      if (call.stage != Call::Stage::Asked) continue;
      std::uint64_t answer = 0;
      const ssize_t got = recv(call.socket.number(), &answer, sizeof answer, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got == sizeof answer && answer == TcpHello::kMagic) {
        call.stage = Call::Stage::Done;
        link(call.peer, call.use, std::move(call.socket));
      } else {
        call.stage = Call::Stage::Absent;
        ++refused_;
      }
    }
  }

  void introduce(Call& call) {
    pollfd polled{call.socket.number(), POLLOUT, 0};
    if (poll(&polled, 1, 0) == 0) return;
    int error = 0;
    socklen_t bytes = sizeof error;
    getsockopt(call.socket.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    TcpHello hello{.network = join_.network,
                   .from = join_.rank,
                   .to = call.peer,
                   .ranks = join_.ranks(),
                   .use = call.use};
    door_.token.copy(hello.token, sizeof hello.token - 1);
    // An empty send buffer takes it whole.
    const bool said = error == 0 && send(call.socket.number(), &hello, sizeof hello,
                                         MSG_NOSIGNAL) == sizeof hello;
    call.stage = said ? Call::Stage::Asked : Call::Stage::Absent;
  }

  void accept_callers() {
    while (true) {
      base::Fd socket{
          accept4(door_.listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
      if (!socket.open()) return;
      TcpListener::Caller caller;
      caller.socket = std::move(socket);
      caller.since = Clock::now();
      door_.callers.push_back(std::move(caller));
    }
  }

  // Hears who called, and keeps those that this network waits for.
  void take_callers() {
    const auto now = Clock::now();
    std::size_t strangers = 0;
    std::erase_if(door_.callers, [&](TcpListener::Caller& caller) {
      if (caller.heard < sizeof caller.hello) {
        auto* const into = reinterpret_cast<char*>(&caller.hello) + caller.heard;  // NOLINT
        const ssize_t got =
            recv(caller.socket.number(), into, sizeof caller.hello - caller.heard, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
        if (got > 0) caller.heard += static_cast<std::size_t>(got);
        if (caller.heard < sizeof caller.hello)
          return now - caller.since > kSilentCaller || ++strangers > kMostStrangers;
        if (caller.hello.magic != TcpHello::kMagic || !knows_token(caller.hello, door_.token))
          return true;
      }
      const TcpHello& hello = caller.hello;
      if (hello.network != join_.network) return false;  // of one that is yet to be joined
      const bool wanted = hello.to == join_.rank && hello.ranks == join_.ranks() &&
                          hello.from > join_.rank && hello.from < join_.ranks() &&
                          join_.is_remote(hello.from) && hello.use <= TcpUse::Notes &&
                          !socket_of(hello.from, hello.use).open();
      const std::uint64_t answer = TcpHello::kMagic;
      if (wanted &&
          send(caller.socket.number(), &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer)
        link(hello.from, hello.use, std::move(caller.socket));
      return true;
    });
  }

  base::Fd& socket_of(Rank peer, TcpUse use) {
    TcpLink& link = links_[index(peer)];
    return use == TcpUse::Messages ? link.messages : link.notes;
  }

  void link(Rank peer, TcpUse use, base::Fd socket) {
    set_mesh_options(socket.number());
    socket_of(peer, use) = std::move(socket);
  }

  std::vector<Rank> missing() {
    std::vector<Rank> ranks;
    for (Rank peer = 0; peer < join_.ranks(); ++peer) {
      const TcpLink& link = links_[index(peer)];
      if (join_.is_remote(peer) && peer != join_.rank &&
          (!link.messages.open() || !link.notes.open()))
        ranks.push_back(peer);
    }
    return ranks;
  }
  bool all_linked() { return missing().empty(); }

  Status too_late() {
    const std::vector<Rank> ranks = missing();
    const TcpAddress& first = join_.addresses[index(ranks.front())];
    return {Code::DeadlineExceeded,
            base::format("rank {}: no connection with rank{} {} (rank {} is at {}, port {}{})",
                         join_.rank, ranks.size() == 1 ? "" : "s", base::join(ranks, ", "),
                         ranks.front(), first.host, first.port,
                         refused_ > 0 ? "; some hung up" : "; is the way there open?")};
  }

  const TcpJoin& join_;
  TcpListener& door_;
  std::optional<SocketAddress> own_;
  std::vector<TcpLink> links_;
  std::vector<Call> calls_;
  int refused_ = 0;
};

}  // namespace

Result<std::vector<TcpLink>> join_tcp(const TcpJoin& join, TcpListener& door,
                                      const std::string& own_address) {
  Joining joining{join, door, own_address};
  Status status = joining.run();
  if (!status.ok()) return status;
  return std::move(joining).links();
}

}  // namespace sluice::transport
