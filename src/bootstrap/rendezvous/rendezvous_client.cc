#include "bootstrap/rendezvous/rendezvous_client.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "bootstrap/rendezvous/interfaces.h"

namespace sluice::bootstrap {
namespace {

constexpr auto kFirstRetry = std::chrono::milliseconds{5};  // twice that each time, up to:
constexpr auto kRetry = std::chrono::milliseconds{100};
constexpr auto kConnecting = std::chrono::seconds{3};  // then perhaps another of its addresses
constexpr auto kTellAfter = std::chrono::seconds{2};

}  // namespace

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
  meeting_.tell(
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

}  // namespace sluice::bootstrap
