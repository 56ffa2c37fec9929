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

constexpr auto kFirstRetry = std::chrono::milliseconds{5};  // doubled each time, up to kRetry
constexpr auto kRetry = std::chrono::milliseconds{100};
constexpr auto kConnectTimeout = std::chrono::seconds{3};  // then try another address
constexpr auto kReportAfter = std::chrono::seconds{2};

Status check(const RendezvousOptions& options) {
  constexpr int kMostRanks = 65536;
  Status status = transport::check_join(options.rank, options.ranks, kMostRanks, options.token);
  if (!status.ok()) return status;
  if (options.master.empty() || options.port == 0) {
    return {Code::InvalidArgument,
            "the address of rank 0 is not known: set MASTER_ADDR to its machine's name or address, "
            "and SLUICE_PORT to a free port there"};
  }
  // A wrong interface should fail now, not after the wait for all ranks.
  return options.interface.empty() ? Status{} : find_interface(options.interface, 0).status();
}

// False, without a sleep, when the deadline has passed.
bool sleep_before(transport::Clock::time_point deadline) {
  if (transport::Clock::now() >= deadline) return false;
  poll(nullptr, 0, static_cast<int>(kRetry.count()));
  return true;
}

// The listener of this rank, and the information that the other ranks receive.
struct OwnListener {
  RankInfo self;
  base::Fd listener;
  std::string interface;
};

// Listens at `towards_master`, or at the interface that the options name.
Result<OwnListener> open_own(const RendezvousOptions& options,
                             const transport::SocketAddress& towards_master) {
  OwnListener own;
  transport::SocketAddress address = towards_master.with_port(0);
  if (options.interface.empty()) {
    own.interface = interface_with(address);
  } else {
    auto found = find_interface(options.interface, address.family());
    if (!found.ok()) return found.status();
    own.interface = found.value().name;
    address = found.value().address.with_port(0);
  }
  own.listener = transport::listen_at(address);
  if (!own.listener.open()) {
    return Status{Code::InvalidInput,
                  base::format("rank {} cannot listen at {} ({}): {}", options.rank, address.host(),
                               own.interface, std::strerror(errno))};
  }
  own.self = {.host = host_name(),
              .node = options.node,
              .address = address.host(),
              .port = transport::SocketAddress::of_socket(own.listener.number()).port(),
              .process = getpid()};
  return own;
}

struct MasterListener {
  base::Fd listener;
  transport::SocketAddress address;
};

Status cannot_listen(const RendezvousOptions& options, const transport::SocketAddress& address,
                     int error) {
  if (error == EADDRNOTAVAIL) {
    return {Code::InvalidInput,
            base::format("rank 0 must run on the machine that MASTER_ADDR names, but {} ({}) is "
                         "not this machine: host {} has {}",
                         options.master, address.host(), host_name(), list_interfaces())};
  }
  if (error == EADDRINUSE) {
    return {
        Code::InvalidInput,
        base::format("port {} of {} is in use by another program: set SLUICE_PORT to a free one",
                     options.port, address.host())};
  }
  return {Code::InvalidInput,
          base::format("rank 0 cannot listen at {}: {}", address.text(), std::strerror(error))};
}

// Listens at the first of the master's addresses that belongs to this machine.
Result<MasterListener> listen_as_master(const RendezvousOptions& options) {
  // A client on this machine may hold the port for a moment: see connect_to().
  const auto taken_until =
      std::min(options.deadline, transport::Clock::now() + std::chrono::seconds{1});
  while (true) {
    const auto addresses = transport::resolve(options.master, options.port);
    if (!addresses.ok()) {
      if (sleep_before(options.deadline)) continue;
      return addresses.status();
    }
    Status failure;
    bool taken = false;
    for (const transport::SocketAddress& address : addresses.value()) {
      if (address.unspecified()) {
        failure = {Code::InvalidInput,
                   base::format("{} is not an address that others can connect to: set "
                                "MASTER_ADDR to an address of this machine, which has {}",
                                options.master, list_interfaces())};
        continue;
      }
      base::Fd listener = transport::listen_at(address);
      if (listener.open()) return MasterListener{std::move(listener), address};
      const int error = errno;
      // A port in use explains more than an address of another machine.
      if (!taken || error == EADDRINUSE) failure = cannot_listen(options, address, error);
      taken |= error == EADDRINUSE;
    }
    if (!taken || !sleep_before(taken_until)) return failure;
  }
}

Result<RendezvousResult> serve(const RendezvousOptions& options) {
  auto master = listen_as_master(options);
  if (!master.ok()) return master.status();
  auto own = open_own(options, master.value().address);
  if (!own.ok()) return own.status();
  RendezvousServer server{options, std::move(master.value().listener), master.value().address};
  auto ranks = server.run(own.value().self);
  if (!ranks.ok()) return ranks.status();
  return RendezvousResult{std::move(ranks).value(), std::move(own.value().listener),
                          own.value().interface};
}

// Every rank but 0 is a client. It tries to connect to rank 0 until rank 0 answers.
class RendezvousClient {
 public:
  explicit RendezvousClient(const RendezvousOptions& options)
      : options_{options}, began_{transport::Clock::now()} {}

  // Blocks until rank 0 has sent the table.
  Result<RendezvousResult> run();

 private:
  // These return nullopt when another attempt may succeed; last_error_ then has the reason.
  std::optional<Result<RendezvousResult>> connect_to(const transport::SocketAddress& master);
  std::optional<Result<RendezvousResult>> join(base::Fd socket,
                                               const transport::SocketAddress& master);
  std::optional<Result<RendezvousResult>> read_answer(const RendezvousMessage& message,
                                                      MessageStream& stream, OwnListener& own,
                                                      const transport::SocketAddress& master);
  bool answer_challenge(const RendezvousMessage& message, MessageStream& stream);
  bool wait(int socket, short events, transport::Clock::time_point until);
  void pause();
  void report_once();
  Status failure(Code code, const std::string& what) const;
  Status too_late() const;

  const RendezvousOptions& options_;
  transport::Clock::time_point began_;
  std::chrono::milliseconds pause_{0};  // before the next attempt
  bool reported_ = false;
  std::string hello_;                          // the body of its hello
  std::optional<transport::Nonce> challenge_;  // of the server
  bool welcome_ = false;
  std::string last_error_ = "no answer";
};

Result<RendezvousResult> RendezvousClient::run() {
  while (true) {
    const auto addresses = transport::resolve(options_.master, options_.port);
    if (addresses.ok()) {
      for (const transport::SocketAddress& master : addresses.value()) {
        auto outcome = connect_to(master);
        if (outcome) return std::move(*outcome);
      }
    } else {
      last_error_ = addresses.status().message();
    }
    if (transport::Clock::now() >= options_.deadline) return too_late();
    pause();
  }
}

std::optional<Result<RendezvousResult>> RendezvousClient::connect_to(
    const transport::SocketAddress& master) {
  base::Fd socket = transport::new_stream_socket(master.family());
  if (!socket.open()) {
    if (errno == EAFNOSUPPORT) return std::nullopt;
    return failure(Code::NoMemory, base::format("cannot open a socket: {}", std::strerror(errno)));
  }
  int error = 0;
  if (connect(socket.number(), master.address(), master.bytes()) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      const auto until = std::min(options_.deadline, transport::Clock::now() + kConnectTimeout);
      error = ETIMEDOUT;
      socklen_t bytes = sizeof error;
      if (wait(socket.number(), POLLOUT, until))
        getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
  }
  if (error != 0) {
    last_error_ = std::strerror(error);
    return std::nullopt;
  }
  // While nobody listens, the system may give this socket the master's own port. It is then
  // connected to itself.
  if (transport::SocketAddress::of_socket(socket.number()).text() == master.text())
    return std::nullopt;
  return join(std::move(socket), master);
}

std::optional<Result<RendezvousResult>> RendezvousClient::join(
    base::Fd socket, const transport::SocketAddress& master) {
  auto own = open_own(options_, transport::SocketAddress::of_socket(socket.number()));
  if (!own.ok()) return own.status();
  MessageStream stream{std::move(socket), longest_table(options_.ranks)};
  const auto left =
      std::chrono::floor<std::chrono::milliseconds>(options_.deadline - transport::Clock::now());
  const Hello hello{.rank = options_.rank,
                    .ranks = options_.ranks,
                    .local_ranks = options_.local_ranks,
                    .milliseconds_left = left.count(),
                    .nonce = transport::new_nonce(),
                    .self = own.value().self};
  const auto hello_bytes = std::make_shared<const std::string>(hello_message(hello));
  hello_ = body_of(*hello_bytes);
  challenge_.reset();
  welcome_ = false;
  bool open = stream.send(hello_bytes);
  while (open) {
    RendezvousMessage message;
    switch (stream.read(message)) {
      case MessageStream::State::Nothing:
        if (transport::Clock::now() >= options_.deadline) return too_late();
        wait(stream.fd(), POLLIN, options_.deadline);
        break;
      case MessageStream::State::Arrived: {
        auto outcome = read_answer(message, stream, own.value(), master);
        if (outcome) return outcome;
        break;
      }
      case MessageStream::State::Garbage:
        return failure(
            Code::InvalidInput,
            base::format("the program that answers at {} is not rank 0 of a Sluice job; if "
                         "another program uses the port, set SLUICE_PORT to a free one",
                         master.text()));
      case MessageStream::State::Closed:
        open = false;
        break;
    }
  }
  if (welcome_) {
    return failure(Code::PeerLost,
                   base::format("rank 0 at {} was lost before all {} ranks had joined",
                                master.text(), options_.ranks));
  }
  last_error_ = "it closed the connection";
  return std::nullopt;
}

// False: the message is no valid challenge.
bool RendezvousClient::answer_challenge(const RendezvousMessage& message, MessageStream& stream) {
  if (challenge_ || stream.sending()) return false;
  challenge_ = read_challenge(message.body);
  if (!challenge_) return false;
  const auto proof =
      transport::prove(options_.token, transport::Side::Client, transcript_of(hello_, *challenge_));
  // A broken connection shows at the next read.
  if (proof) (void)stream.send(std::make_shared<const std::string>(proof_message(*proof)));
  return proof.has_value();
}

std::optional<Result<RendezvousResult>> RendezvousClient::read_answer(
    const RendezvousMessage& message, MessageStream& stream, OwnListener& own,
    const transport::SocketAddress& master) {
  // A refusal has the same format in every version.
  if (message.kind == RendezvousMessageKind::Refusal) {
    return failure(Code::InvalidArgument, base::format("rank 0 at {} refused this process: {}",
                                                       master.text(), read_refusal(message.body)));
  }
  if (message.version == kRendezvousVersion) {
    if (message.kind == RendezvousMessageKind::Challenge && answer_challenge(message, stream))
      return std::nullopt;
    if (message.kind == RendezvousMessageKind::Welcome && challenge_) {
      const auto proof = read_proof(message.body);
      welcome_ = proof && transport::is_proven(options_.token, transport::Side::Server,
                                               transcript_of(hello_, *challenge_), *proof);
      if (welcome_) return std::nullopt;
      return failure(Code::InvalidInput,
                     base::format("the program that answers at {} does not know the token of this "
                                  "job, so it is not rank 0",
                                  master.text()));
    }
    if (message.kind == RendezvousMessageKind::Failure && welcome_) {
      const Status why = read_failure(message.body);
      return failure(why.code(), base::format("not all ranks joined: {}", why.message()));
    }
    if (message.kind == RendezvousMessageKind::Table && welcome_) {
      auto ranks = read_table(message.body, options_.ranks);
      if (ranks) return RendezvousResult{std::move(*ranks), std::move(own.listener), own.interface};
    }
  }
  return failure(
      Code::InvalidInput,
      base::format("rank 0 at {} sent an invalid message; all ranks need the same version "
                   "of Sluice",
                   master.text()));
}

// True: the socket has an event.
bool RendezvousClient::wait(int socket, short events, transport::Clock::time_point until) {
  while (true) {
    pollfd polled{socket, events, 0};
    if (poll(&polled, 1, transport::poll_timeout(until, kRetry)) > 0) return true;
    report_once();
    if (transport::Clock::now() >= until) return false;
  }
}

void RendezvousClient::pause() {
  pause_ = std::clamp(2 * pause_, kFirstRetry, kRetry);
  poll(nullptr, 0, static_cast<int>(pause_.count()));
  report_once();
}

void RendezvousClient::report_once() {
  if (reported_ || welcome_ || transport::Clock::now() < began_ + kReportAfter) return;
  reported_ = true;
  options_.report(
      base::format("connecting to {}", transport::show_address(options_.master, options_.port)));
}

Status RendezvousClient::failure(Code code, const std::string& what) const {
  return {code, base::format("rank {}: {}", options_.rank, what)};
}

Status RendezvousClient::too_late() const {
  const std::string master = transport::show_address(options_.master, options_.port);
  if (welcome_) {
    return failure(Code::DeadlineExceeded,
                   base::format("rank 0 at {} answered, but not all {} ranks joined in time",
                                master, options_.ranks));
  }
  return failure(Code::DeadlineExceeded,
                 base::format("rank 0 did not answer at {} in time ({}); does it run there, and is "
                              "the port open?",
                              master, last_error_));
}

}  // namespace

Result<RendezvousResult> rendezvous(const RendezvousOptions& options) {
  Status status = check(options);
  if (!status.ok()) return status;
  return options.rank == 0 ? serve(options) : RendezvousClient{options}.run();
}

}  // namespace sluice::bootstrap
