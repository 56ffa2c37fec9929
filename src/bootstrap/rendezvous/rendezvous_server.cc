#include "bootstrap/rendezvous/rendezvous_server.h"

#include <poll.h>

#include <algorithm>
#include <map>

#include "base/format.h"

namespace sluice::bootstrap {
namespace {

constexpr auto kLongestPoll = std::chrono::milliseconds{100};
constexpr auto kHelloTimeout = std::chrono::seconds{10};
constexpr auto kReportAfter = std::chrono::seconds{1};
constexpr auto kReportAgainAfter = std::chrono::seconds{5};
constexpr std::size_t kMostUnknown = 64;  // pending connections beyond one for each rank

std::shared_ptr<const std::string> shared(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

}  // namespace

void Roster::add(Rank rank, RankInfo info, int local_ranks) {
  present_[static_cast<std::size_t>(rank)] = Entry{std::move(info), local_ranks};
  ++joined_;
}

std::vector<RankInfo> Roster::infos() const {
  std::vector<RankInfo> all;
  all.reserve(present_.size());
  for (const auto& entry : present_) all.push_back(entry.value().info);
  return all;
}

std::string Roster::name_of(Rank rank) const {
  return base::format("rank {} on host {}", rank,
                      present_[static_cast<std::size_t>(rank)].value().info.host);
}

std::string Roster::text() const {
  std::string text = base::format("{} of {} ranks joined", joined_, ranks());
  if (complete()) return text;
  const std::string by_host = missing_by_host();
  if (!by_host.empty()) return text + ", waiting for " + by_host;
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (!has(rank)) missing.push_back(rank);
  }
  return text + ", waiting for " + transport::show_ranks(missing);
}

std::string Roster::missing_by_host() const {
  struct Host {
    std::string name;
    int joined = 0;
    int expected = 0;
  };
  std::map<std::string, Host> hosts;  // by node: two nodes may have one host name
  for (const auto& entry : present_) {
    if (!entry) continue;
    if (entry->local_ranks == 0) return "";
    Host& host = hosts[entry->info.node];
    host.name = entry->info.host;
    host.expected = std::max(host.expected, entry->local_ranks);
    ++host.joined;
  }
  std::vector<std::string> shown;
  int missing = 0;
  for (const auto& [node, host] : hosts) {
    if (host.joined >= host.expected) continue;
    missing += host.expected - host.joined;
    shown.push_back(base::format("{} on host {}", host.expected - host.joined, host.name));
  }
  constexpr std::size_t kMostShown = 8;
  if (missing != ranks() - joined_ || shown.size() > kMostShown) return "";
  return base::format("{}", base::join(shown, ", "));
}

RendezvousServer::RendezvousServer(const RendezvousOptions& options, base::Fd listener,
                                   const transport::SocketAddress& address)
    : options_{options},
      listener_{std::move(listener)},
      address_{address},
      roster_{options.ranks},
      pending_{static_cast<std::size_t>(options.ranks) + kMostUnknown, kHelloTimeout},
      deadline_{options.deadline},
      reported_at_{transport::Clock::now()} {}

Result<std::vector<RankInfo>> RendezvousServer::run(const RankInfo& self) {
  roster_.add(0, self, options_.local_ranks);
  Status status = wait_for_all();
  if (status.ok()) status = send_table();
  if (!status.ok()) {
    send_failure(status);
    return status;
  }
  return roster_.infos();
}

Status RendezvousServer::wait_for_all() {
  while (!roster_.complete()) {
    if (transport::Clock::now() >= deadline_) return too_late();
    poll_sockets();
    Status status = pending_.accept_all(listener_, name(), [](base::Fd socket) {
      return std::optional{Applicant{.stream = MessageStream{std::move(socket)}}};
    });
    if (!status.ok()) return status;
    pending_.read_all([this](Applicant& applicant) { return is_settled(applicant); });
    status = check_clients();
    if (!status.ok()) return status;
    report_progress();
  }
  return {};
}

// A client may leave as soon as it has the table, so this reads nothing.
Status RendezvousServer::send_table() {
  listener_.reset();
  pending_.clear();
  const auto table = shared(table_message(roster_.infos()));
  for (Client& client : clients_) {
    // Only the short challenge and welcome were sent before, so nothing should be pending.
    if (client.stream.sending() || !client.stream.send(table)) return lost(client.rank);
  }
  while (true) {
    std::vector<pollfd> polled;
    for (Client& client : clients_) {
      if (!client.stream.send_more()) return lost(client.rank);
      if (client.stream.sending()) polled.push_back({client.stream.fd(), POLLOUT, 0});
    }
    if (polled.empty()) return {};
    if (transport::Clock::now() >= deadline_) {
      return {Code::DeadlineExceeded,
              base::format("{}: all ranks joined, but {} of them did not read the table of all "
                           "addresses in time",
                           name(), polled.size())};
    }
    poll(polled.data(), polled.size(), transport::poll_timeout(deadline_, kLongestPoll));
  }
}

void RendezvousServer::poll_sockets() {
  std::vector<pollfd> polled;
  for (const Client& client : clients_) polled.push_back({client.stream.fd(), POLLIN, 0});
  polled.push_back({listener_.number(), POLLIN, 0});
  pending_.add_to(polled);
  poll(polled.data(), polled.size(), transport::poll_timeout(deadline_, kLongestPoll));
  pending_.note_events(polled);
  for (std::size_t i = 0; i < clients_.size(); ++i) clients_[i].ready = polled[i].revents != 0;
}

// True: the connection is not pending any more.
bool RendezvousServer::is_settled(Applicant& applicant) {
  RendezvousMessage message;
  const MessageStream::State state = applicant.stream.read(message);
  if (state == MessageStream::State::Nothing) return false;
  if (state != MessageStream::State::Arrived) return true;
  if (applicant.hello.empty()) return !challenge(applicant, message);
  const Hello hello = read_hello(applicant.hello).value();  // it was readable
  if (const std::string why = refusal_of(applicant, message, hello); !why.empty()) {
    refuse(applicant, why);
  } else {
    admit(applicant, hello);
  }
  return true;
}

// False: it has sent no hello of this version, or it has gone.
bool RendezvousServer::challenge(Applicant& applicant, const RendezvousMessage& message) {
  if (message.version != kRendezvousVersion) {
    refuse(applicant, base::format("it speaks version {} of the rendezvous, not {}; all ranks need "
                                   "the same version of Sluice",
                                   message.version, kRendezvousVersion));
    return false;
  }
  if (message.kind != RendezvousMessageKind::Hello || !read_hello(message.body)) {
    refuse(applicant, "it sent no valid hello");
    return false;
  }
  applicant.hello = message.body;
  applicant.challenge = transport::new_nonce();
  return applicant.stream.send(shared(challenge_message(applicant.challenge)));
}

void RendezvousServer::refuse(Applicant& applicant, const std::string& why) {
  last_refused_ =
      base::format("a connection from {} was refused: {}",
                   transport::SocketAddress::of_peer(applicant.stream.fd()).host(), why);
  (void)applicant.stream.send(shared(refusal_message(why)));
}

void RendezvousServer::admit(Applicant& applicant, const Hello& hello) {
  const auto proof = transport::prove(options_.token, transport::Side::Server,
                                      transcript_of(applicant.hello, applicant.challenge));
  // If the client has disconnected before its welcome, it connects again.
  if (!proof || !applicant.stream.send(shared(welcome_message(*proof)))) return;
  const auto rank = static_cast<Rank>(hello.rank);
  roster_.add(rank, hello.self, hello.local_ranks);
  clients_.push_back({rank, std::move(applicant.stream)});
  // The rank with the earliest deadline must still receive the names of the missing ranks.
  const std::chrono::milliseconds left{hello.milliseconds_left};
  const auto margin = std::min(left / 4, std::chrono::milliseconds{500});
  deadline_ = std::min(deadline_, transport::Clock::now() + left - margin);
}

// A stranger learns only that it does not know the token.
std::string RendezvousServer::refusal_of(const Applicant& applicant,
                                         const RendezvousMessage& message,
                                         const Hello& hello) const {
  const auto proof =
      message.kind == RendezvousMessageKind::Proof ? read_proof(message.body) : std::nullopt;
  if (!proof || !transport::is_proven(options_.token, transport::Side::Client,
                                      transcript_of(applicant.hello, applicant.challenge), *proof))
    return std::string{transport::kWrongToken};
  std::string why = transport::reason_to_refuse({hello.rank, hello.ranks}, options_.ranks);
  if (!why.empty()) return why;
  if (hello.local_ranks > options_.ranks)
    return base::format("it counts {} ranks on its host, but there are {} in all",
                        hello.local_ranks, options_.ranks);
  const auto rank = static_cast<Rank>(hello.rank);
  if (roster_.has(rank))
    return base::format("{} has joined already; every process needs a rank of its own",
                        roster_.name_of(rank));
  return "";
}

Status RendezvousServer::check_clients() {
  for (Client& client : clients_) {
    if (!client.ready) continue;
    client.ready = false;
    RendezvousMessage ignored;  // a client sends nothing after its hello
    const MessageStream::State state = client.stream.read(ignored);
    if (state == MessageStream::State::Closed || state == MessageStream::State::Garbage)
      return lost(client.rank);
  }
  return {};
}

void RendezvousServer::send_failure(const Status& status) {
  const auto bytes = shared(failure_message(status));
  for (Client& client : clients_) {
    // In the middle of a table, the client would take these bytes for a part of the table.
    if (!client.stream.sending()) (void)client.stream.send(bytes);
  }
}

void RendezvousServer::report_progress() {
  const auto now = transport::Clock::now();
  if (now < reported_at_ + kReportAfter) return;
  std::string text = progress();
  if (text == last_report_ && now < reported_at_ + kReportAgainAfter) return;
  options_.report(text);
  last_report_ = std::move(text);
  reported_at_ = now;
}

std::string RendezvousServer::progress() const {
  return last_refused_.empty() ? roster_.text()
                               : base::format("{} ({})", roster_.text(), last_refused_);
}

Status RendezvousServer::lost(Rank rank) const {
  return {Code::PeerLost,
          base::format("{}: {} left before all ranks had joined", name(), roster_.name_of(rank))};
}

Status RendezvousServer::too_late() const {
  std::string text = base::format("{}: {}", name(), progress());
  const bool by_name = !transport::SocketAddress::numeric(options_.master, options_.port);
  if (address_.loopback() && by_name && options_.local_ranks != options_.ranks) {
    text += base::format(
        "; {} is {} here, which no other machine can connect to: set MASTER_ADDR to the address of "
        "rank 0's machine instead of its name",
        options_.master, address_.host());
  }
  return {Code::DeadlineExceeded, text};
}

std::string RendezvousServer::name() const { return base::format("rank 0 at {}", address_.text()); }

}  // namespace sluice::bootstrap
