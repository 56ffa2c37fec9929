#include "bootstrap/rendezvous/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "bootstrap/rendezvous/rendezvous_message.h"
#include "bootstrap/rendezvous/rendezvous_server.h"

namespace sluice::bootstrap {
namespace {

constexpr auto kFirstRetry = std::chrono::milliseconds{5};  // twice that each time, up to:
constexpr auto kRetry = std::chrono::milliseconds{100};
constexpr auto kConnecting = std::chrono::seconds{3};  // then perhaps another of its addresses
constexpr auto kTellAfter = std::chrono::seconds{2};

Status check(const RendezvousOptions& meeting) {
  constexpr int kMostRanks = 65536;
  if (meeting.ranks < 1 || meeting.ranks > kMostRanks || meeting.rank < 0 ||
      meeting.rank >= meeting.ranks) {
    return {Code::InvalidArgument,
            base::format("rank {} of {} cannot join: ranks count from 0, and there are 1 to {}",
                         meeting.rank, meeting.ranks, kMostRanks)};
  }
  if (meeting.token.size() > kLongestText) {
    return {Code::InvalidArgument,
            base::format("the job's token has {} characters, {} at most are allowed",
                         meeting.token.size(), kLongestText)};
  }
  if (meeting.master.empty() || meeting.port == 0) {
    return {Code::InvalidArgument,
            "where rank 0 can be called is not known: set MASTER_ADDR to its machine's name or "
            "address, and SLUICE_PORT to a free port there"};
  }
  // Better now than when everybody waits.
  return meeting.interface.empty() ? Status{} : find_interface(meeting.interface, 0).status();
}

bool nap_until(transport::Clock::time_point deadline) {
  if (transport::Clock::now() >= deadline) return false;
  poll(nullptr, 0, static_cast<int>(kRetry.count()));
  return true;
}

// Where a rank can be called, and what it says of itself.
struct OwnListener {
  RankInfo self;
  base::Fd listener;
  std::string interface;
};

// Listens at `towards_master`, or at the interface that the options name.
Result<OwnListener> open_own(const RendezvousOptions& meeting,
                             const transport::SocketAddress& towards_master) {
  OwnListener own;
  transport::SocketAddress address = towards_master.with_port(0);
  if (meeting.interface.empty()) {
    own.interface = interface_with(address);
  } else {
    auto found = find_interface(meeting.interface, address.family());
    if (!found.ok()) return found.status();
    own.interface = found.value().name;
    address = found.value().address.with_port(0);
  }
  own.listener = transport::listen_at(address);
  if (!own.listener.open()) {
    return Status{Code::InvalidInput,
                  base::format("rank {} cannot listen at {} ({}): {}", meeting.rank, address.host(),
                               own.interface, std::strerror(errno))};
  }
  own.self = {.host = host_name(),
              .node = meeting.node,
              .address = address.host(),
              .port = transport::SocketAddress::of_socket(own.listener.number()).port(),
              .process = getpid()};
  return own;
}

struct Desk {
  base::Fd listener;
  transport::SocketAddress address;
};

Status cannot_listen(const RendezvousOptions& meeting, const transport::SocketAddress& address,
                     int error) {
  if (error == EADDRNOTAVAIL) {
    return {Code::InvalidInput,
            base::format("rank 0 must run on the machine that the others call, but {} ({}) is not "
                         "this one: host {} has {}",
                         meeting.master, address.host(), host_name(), list_interfaces())};
  }
  if (error == EADDRINUSE) {
    return {
        Code::InvalidInput,
        base::format("port {} of {} is in use by another program: set SLUICE_PORT to a free one",
                     meeting.port, address.host())};
  }
  return {Code::InvalidInput,
          base::format("rank 0 cannot listen at {}: {}", address.text(), std::strerror(error))};
}

// The first of the master's addresses that is this machine's.
Result<Desk> listen_as_master(const RendezvousOptions& meeting) {
  // A rank of this machine that calls already may have met itself and hold the port for a moment.
  const auto taken_until =
      std::min(meeting.deadline, transport::Clock::now() + std::chrono::seconds{1});
  while (true) {
    const auto addresses = transport::resolve(meeting.master, meeting.port);
    if (!addresses.ok()) {
      if (nap_until(meeting.deadline)) continue;
      return addresses.status();
    }
    Status failure;
    bool taken = false;
    for (const transport::SocketAddress& address : addresses.value()) {
      if (address.unspecified()) {
        failure = {Code::InvalidInput, base::format("{} is no address that others can call: give "
                                                    "one of this machine, which has {}",
                                                    meeting.master, list_interfaces())};
        continue;
      }
      base::Fd listener = transport::listen_at(address);
      if (listener.open()) return Desk{std::move(listener), address};
      const int error = errno;
      // That the port is taken says more than that another address is elsewhere.
      if (!taken || error == EADDRINUSE) failure = cannot_listen(meeting, address, error);
      taken |= error == EADDRINUSE;
    }
    if (!taken || !nap_until(taken_until)) return failure;
  }
}

Result<RendezvousResult> receive(const RendezvousOptions& meeting) {
  auto desk = listen_as_master(meeting);
  if (!desk.ok()) return desk.status();
  auto own = open_own(meeting, desk.value().address);
  if (!own.ok()) return own.status();
  RendezvousServer reception{meeting, std::move(desk.value().listener), desk.value().address};
  auto participants = reception.run(own.value().self);
  if (!participants.ok()) return participants.status();
  return RendezvousResult{std::move(participants).value(), std::move(own.value().listener),
                          own.value().interface};
}

// What every rank but 0 does: it calls rank 0 until rank 0 answers.
class RendezvousClient {
 public:
  explicit RendezvousClient(const RendezvousOptions& meeting)
      : meeting_{meeting}, began_{transport::Clock::now()} {}

  // Blocks until rank 0 has told of everybody.
  Result<RendezvousResult> run();

 private:
  // None: worth another call, and why_not_ says why.
  std::optional<Result<RendezvousResult>> attempt(const transport::SocketAddress& master);
  std::optional<Result<RendezvousResult>> introduce(base::Fd socket,
                                                    const transport::SocketAddress& master);
  std::optional<Result<RendezvousResult>> answer(const RendezvousMessage& message, OwnListener& own,
                                                 const transport::SocketAddress& master);
  bool wait(int socket, short events, transport::Clock::time_point until);
  void nap();
  void tell_once();
  Status failure(Code code, const std::string& what) const;
  Status too_late() const;

  const RendezvousOptions& meeting_;
  transport::Clock::time_point began_;
  std::chrono::milliseconds pause_{0};  // before the next call
  bool told_ = false;
  bool welcome_ = false;
  std::string why_not_ = "no answer";
};

Result<RendezvousResult> RendezvousClient::run() {
  while (true) {
    const auto addresses = transport::resolve(meeting_.master, meeting_.port);
    if (addresses.ok()) {
      for (const transport::SocketAddress& master : addresses.value()) {
        auto outcome = attempt(master);
        if (outcome) return std::move(*outcome);
      }
    } else {
      why_not_ = addresses.status().message();
    }
    if (transport::Clock::now() >= meeting_.deadline) return too_late();
    nap();
  }
}

std::optional<Result<RendezvousResult>> RendezvousClient::attempt(
    const transport::SocketAddress& master) {
  base::Fd socket = transport::new_stream_socket(master.family());
  if (!socket.open()) {
    if (errno == EAFNOSUPPORT) return std::nullopt;
    return failure(Code::NoMemory, base::format("no socket: {}", std::strerror(errno)));
  }
  int error = 0;
  if (connect(socket.number(), master.address(), master.bytes()) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      const auto until = std::min(meeting_.deadline, transport::Clock::now() + kConnecting);
      error = ETIMEDOUT;
      socklen_t bytes = sizeof error;
      if (wait(socket.number(), POLLOUT, until))
        getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
  }
  if (error != 0) {
    why_not_ = std::strerror(error);
    return std::nullopt;
  }
  // While nobody listens, a caller of its own machine may happen to be given that very port, and
  // then meets itself.
  if (transport::SocketAddress::of_socket(socket.number()).text() == master.text())
    return std::nullopt;
  return introduce(std::move(socket), master);
}

std::optional<Result<RendezvousResult>> RendezvousClient::introduce(
    base::Fd socket, const transport::SocketAddress& master) {
  auto own = open_own(meeting_, transport::SocketAddress::of_socket(socket.number()));
  if (!own.ok()) return own.status();
  MessageStream stream{std::move(socket), longest_table(meeting_.ranks)};
  const auto left =
      std::chrono::floor<std::chrono::milliseconds>(meeting_.deadline - transport::Clock::now());
  const Hello hello{.rank = meeting_.rank,
                    .ranks = meeting_.ranks,
                    .local_ranks = meeting_.local_ranks,
                    .patience_ms = left.count(),
                    .token = meeting_.token,
                    .self = own.value().self};
  welcome_ = false;
  bool open = stream.send(std::make_shared<const std::string>(hello_message(hello)));
  while (open) {
    RendezvousMessage message;
    switch (stream.read(message)) {
      case MessageStream::State::Nothing:
        if (transport::Clock::now() >= meeting_.deadline) return too_late();
        wait(stream.number(), POLLIN, meeting_.deadline);
        break;
      case MessageStream::State::Arrived: {
        auto outcome = answer(message, own.value(), master);
        if (outcome) return outcome;
        break;
      }
      case MessageStream::State::Garbage:
        return failure(Code::InvalidInput,
                       base::format("what answers at {} is not rank 0 of a Sluice job; if the port "
                                    "belongs to another program, set SLUICE_PORT to a free one",
                                    master.text()));
      case MessageStream::State::Closed:
        open = false;
        break;
    }
  }
  if (welcome_) {
    return failure(Code::PeerLost,
                   base::format("rank 0 at {} was lost before all {} ranks had joined",
                                master.text(), meeting_.ranks));
  }
  why_not_ = "it hangs up";
  return std::nullopt;
}

std::optional<Result<RendezvousResult>> RendezvousClient::answer(
    const RendezvousMessage& message, OwnListener& own, const transport::SocketAddress& master) {
  // A refusal reads the same in every version.
  if (message.kind == RendezvousMessageKind::Refusal) {
    return failure(Code::InvalidArgument, base::format("rank 0 at {} refused this process: {}",
                                                       master.text(), read_refusal(message.body)));
  }
  if (message.version == kRendezvousVersion) {
    if (message.kind == RendezvousMessageKind::Welcome) {
      welcome_ = true;
      return std::nullopt;
    }
    if (message.kind == RendezvousMessageKind::GivesUp) {
      const Status why = read_gives_up(message.body);
      return failure(why.code(), base::format("the ranks did not all meet: {}", why.message()));
    }
    if (message.kind == RendezvousMessageKind::Table) {
      auto participants = read_table(message.body, meeting_.ranks);
      if (participants)
        return RendezvousResult{std::move(*participants), std::move(own.listener), own.interface};
    }
  }
  return failure(Code::InvalidInput,
                 base::format("what rank 0 at {} says makes no sense; all ranks need the same "
                              "version of Sluice",
                              master.text()));
}

// True: something happened there.
bool RendezvousClient::wait(int socket, short events, transport::Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - transport::Clock::now());
    pollfd polled{socket, events, 0};
    const auto slice = std::clamp<std::int64_t>(left.count(), 0, kRetry.count());
    if (poll(&polled, 1, static_cast<int>(slice)) > 0) return true;
    tell_once();
    if (transport::Clock::now() >= until) return false;
  }
}

void RendezvousClient::nap() {
  pause_ = std::clamp(2 * pause_, kFirstRetry, kRetry);
  poll(nullptr, 0, static_cast<int>(pause_.count()));
  tell_once();
}

void RendezvousClient::tell_once() {
  if (told_ || welcome_ || transport::Clock::now() < began_ + kTellAfter) return;
  told_ = true;
  meeting_.report(
      base::format("calling {}", transport::show_address(meeting_.master, meeting_.port)));
}

Status RendezvousClient::failure(Code code, const std::string& what) const {
  return {code, base::format("rank {}: {}", meeting_.rank, what)};
}

Status RendezvousClient::too_late() const {
  const std::string master = transport::show_address(meeting_.master, meeting_.port);
  if (welcome_) {
    return failure(Code::DeadlineExceeded,
                   base::format("rank 0 at {} answered, but not all {} ranks joined in time",
                                master, meeting_.ranks));
  }
  return failure(Code::DeadlineExceeded,
                 base::format("rank 0 did not answer at {} in time ({}); does it run there, and is "
                              "the port open?",
                              master, why_not_));
}

}  // namespace

Result<RendezvousResult> rendezvous(const RendezvousOptions& meeting) {
  Status status = check(meeting);
  if (!status.ok()) return status;
  return meeting.rank == 0 ? receive(meeting) : RendezvousClient{meeting}.run();
}

}  // namespace sluice::bootstrap
