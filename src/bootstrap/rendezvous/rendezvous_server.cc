#include "bootstrap/rendezvous/rendezvous_server.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bootstrap {
namespace {

constexpr auto kNap = std::chrono::milliseconds{100};         // between looks at the clock
constexpr auto kStrangerPatience = std::chrono::seconds{10};  // for a whole Hello
constexpr auto kTellAfter = std::chrono::seconds{1};
constexpr auto kTellAgainAfter = std::chrono::seconds{5};
constexpr std::size_t kSpareStrangers = 64;

int milliseconds_until(transport::Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - transport::Clock::now());
  return static_cast<int>(
      std::clamp<std::int64_t>(left.count(), 0, std::chrono::milliseconds{kNap}.count()));
}

}  // namespace

void Roster::add(Rank rank, RankInfo participant, int local_ranks) {
  present_[static_cast<std::size_t>(rank)] = Entry{std::move(participant), local_ranks};
  ++joined_;
}

std::vector<RankInfo> Roster::participants() const {
  std::vector<RankInfo> all;
  all.reserve(present_.size());
  for (const auto& entry : present_) all.push_back(entry.value().participant);
  return all;
}

std::string Roster::who(Rank rank) const {
  return base::format("rank {} on host {}", rank,
                      present_[static_cast<std::size_t>(rank)].value().participant.host);
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
  return text + ", waiting for " + show_ranks(missing);
}

std::string Roster::missing_by_host() const {
  struct Host {
    std::string name;
    int joined = 0;
    int expected = 0;
  };
  std::map<std::string, Host> hosts;  // by node: two may have one name
  for (const auto& entry : present_) {
    if (!entry) continue;
    if (entry->local_ranks == 0) return "";
    Host& host = hosts[entry->participant.node];
    host.name = entry->participant.host;
    host.expected = std::max(host.expected, entry->local_ranks);
    ++host.joined;
  }
  std::vector<std::string> waits;
  int missing = 0;
  for (const auto& [node, host] : hosts) {
    if (host.joined >= host.expected) continue;
    missing += host.expected - host.joined;
    waits.push_back(base::format("{} on host {}", host.expected - host.joined, host.name));
  }
  constexpr std::size_t kShown = 8;
  if (missing != ranks() - joined_ || waits.size() > kShown) return "";
  return base::format("{}", base::join(waits, ", "));
}

std::string show_ranks(const std::vector<Rank>& ranks) {
  constexpr std::size_t kShortRun = 3;  // up to here every one is written
  constexpr std::size_t kShown = 12;
  std::vector<std::string> shown;
  std::size_t at = 0;
  while (at < ranks.size() && shown.size() < kShown) {
    std::size_t run = 1;
    while (at + run < ranks.size() && ranks[at + run] == ranks[at] + static_cast<Rank>(run)) ++run;
    if (run > kShortRun) {
      shown.push_back(base::format("{}-{}", ranks[at], ranks[at + run - 1]));
    } else {
      run = 1;
      shown.push_back(std::to_string(ranks[at]));
    }
    at += run;
  }
  std::string text =
      base::format("rank{} {}", ranks.size() == 1 ? "" : "s", base::join(shown, ", "));
  if (at < ranks.size()) text += base::format(" and {} more", ranks.size() - at);
  return text;
}

RendezvousServer::RendezvousServer(const RendezvousOptions& meeting, base::Fd listener,
                                   const transport::SocketAddress& address)
    : meeting_{meeting},
      listener_{std::move(listener)},
      address_{address},
      attendance_{meeting.ranks},
      deadline_{meeting.deadline},
      told_at_{transport::Clock::now()} {}

Result<std::vector<RankInfo>> RendezvousServer::run(const RankInfo& self) {
  attendance_.add(0, self, meeting_.local_ranks);
  Status status = gather();
  if (status.ok()) status = hand_out();
  if (!status.ok()) {
    give_up(status);
    return status;
  }
  return attendance_.participants();
}

Status RendezvousServer::gather() {
  while (!attendance_.complete()) {
    if (transport::Clock::now() >= deadline_) return too_late();
    wait();
    Status status = accept_callers();
    if (!status.ok()) return status;
    hear_strangers();
    status = hear_guests();
    if (!status.ok()) return status;
    tell_progress();
  }
  return {};
}

// A guest that has the table may leave at once, so only sending counts here.
Status RendezvousServer::hand_out() {
  listener_.reset();
  strangers_.clear();
  const auto table = std::make_shared<const std::string>(table_message(attendance_.participants()));
  for (Guest& guest : guests_) {
    // A guest has had nothing but its welcome, of 12 bytes; that is long gone.
    if (guest.stream.sending() || !guest.stream.send(table)) return left(guest.rank);
  }
  while (true) {
    std::vector<pollfd> polled;
    for (Guest& guest : guests_) {
      if (!guest.stream.send_more()) return left(guest.rank);
      if (guest.stream.sending()) polled.push_back({guest.stream.number(), POLLOUT, 0});
    }
    if (polled.empty()) return {};
    if (transport::Clock::now() >= deadline_) {
      return {Code::DeadlineExceeded,
              base::format("{}: all ranks joined, but {} of them took too long to read where the "
                           "others are",
                           who(), polled.size())};
    }
    poll(polled.data(), polled.size(), milliseconds_until(deadline_));
  }
}

void RendezvousServer::wait() {
  std::vector<pollfd> polled{{listener_.number(), POLLIN, 0}};
  for (const Stranger& stranger : strangers_)
    polled.push_back({stranger.stream.number(), POLLIN, 0});
  for (const Guest& guest : guests_) polled.push_back({guest.stream.number(), POLLIN, 0});
  if (poll(polled.data(), polled.size(), milliseconds_until(deadline_)) < 0) return;
  auto entry = polled.begin() + 1;
  for (Stranger& stranger : strangers_) stranger.ready = (entry++)->revents != 0;
  for (Guest& guest : guests_) guest.ready = (entry++)->revents != 0;
}

Status RendezvousServer::accept_callers() {
  while (true) {
    base::Fd socket{accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket.open()) {
      if (errno != EMFILE && errno != ENFILE) return {};  // nobody there, or gone again
      return {Code::NoMemory, base::format("{}: too many open files: raise ulimit -n", who())};
    }
    // The oldest has had the most time; if it is a rank after all it calls again.
    if (strangers_.size() >= static_cast<std::size_t>(meeting_.ranks) + kSpareStrangers)
      strangers_.erase(strangers_.begin());
    strangers_.push_back(
        {MessageStream{std::move(socket)}, transport::Clock::now() + kStrangerPatience});
  }
}

void RendezvousServer::hear_strangers() {
  const auto now = transport::Clock::now();
  std::erase_if(strangers_, [&](Stranger& stranger) {
    if (!stranger.ready) return now >= stranger.until;
    RendezvousMessage message;
    switch (stranger.stream.read(message)) {
      case MessageStream::State::Nothing:
        return now >= stranger.until;
      case MessageStream::State::Arrived:
        admit(stranger, message);
        return true;
      case MessageStream::State::Closed:
      case MessageStream::State::Garbage:
        return true;
    }
    return true;
  });
}

void RendezvousServer::admit(Stranger& stranger, const RendezvousMessage& message) {
  const auto hello =
      message.version == kRendezvousVersion && message.kind == RendezvousMessageKind::Hello
          ? read_hello(message.body)
          : std::nullopt;
  const std::string why = reason_to_refuse(message, hello);
  if (!why.empty()) {
    last_refused_ =
        base::format("a caller from {} was refused: {}",
                     transport::SocketAddress::of_peer(stranger.stream.number()).host(), why);
    (void)stranger.stream.send(std::make_shared<const std::string>(refusal_message(why)));
    return;
  }
  // Cut off before it was welcome: it calls again.
  if (!stranger.stream.send(std::make_shared<const std::string>(welcome_message()))) return;
  const auto rank = static_cast<Rank>(hello->rank);
  attendance_.add(rank, hello->self, hello->local_ranks);
  guests_.push_back({rank, std::move(stranger.stream)});
  // Whoever waits shortest should still hear who is missing.
  const std::chrono::milliseconds patience{hello->patience_ms};
  const auto margin = std::min(patience / 4, std::chrono::milliseconds{500});
  deadline_ = std::min(deadline_, transport::Clock::now() + patience - margin);
}

std::string RendezvousServer::reason_to_refuse(const RendezvousMessage& message,
                                               const std::optional<Hello>& hello) const {
  if (message.version != kRendezvousVersion) {
    return base::format(
        "it speaks version {} of the rendezvous, not {}; all ranks need the same "
        "version of Sluice",
        message.version, kRendezvousVersion);
  }
  if (!hello) return "it does not speak as a rank does";
  if (!base::equal_in_constant_time(hello->token, meeting_.token))
    return "its token is not that of this job";
  if (hello->ranks != meeting_.ranks)
    return base::format("it counts {} ranks, not {}", hello->ranks, meeting_.ranks);
  if (hello->rank >= meeting_.ranks)
    return base::format("rank {} is not one of {} ranks", hello->rank, meeting_.ranks);
  const auto rank = static_cast<Rank>(hello->rank);
  if (attendance_.has(rank))
    return base::format("{} has joined already; every process needs a rank of its own",
                        attendance_.who(rank));
  return "";
}

Status RendezvousServer::hear_guests() {
  for (Guest& guest : guests_) {
    if (!guest.ready) continue;
    RendezvousMessage ignored;  // a guest has nothing more to say
    const MessageStream::State state = guest.stream.read(ignored);
    if (state == MessageStream::State::Closed || state == MessageStream::State::Garbage)
      return left(guest.rank);
  }
  return {};
}

void RendezvousServer::give_up(const Status& status) {
  const auto bytes = std::make_shared<const std::string>(gives_up_message(status));
  for (Guest& guest : guests_) {
    // In the middle of a table the sentence would be taken for a part of it.
    if (!guest.stream.sending()) (void)guest.stream.send(bytes);
  }
}

void RendezvousServer::tell_progress() {
  const auto now = transport::Clock::now();
  if (now < told_at_ + kTellAfter) return;
  std::string text = attendance_.text();
  if (!last_refused_.empty()) text += base::format(" ({})", last_refused_);
  if (text == last_told_ && now < told_at_ + kTellAgainAfter) return;
  meeting_.report(text);
  last_told_ = std::move(text);
  told_at_ = now;
}

Status RendezvousServer::left(Rank rank) const {
  return {Code::PeerLost,
          base::format("{}: {} left before all had joined", who(), attendance_.who(rank))};
}

Status RendezvousServer::too_late() const {
  std::string text = base::format("{}: {}", who(), attendance_.text());
  if (!last_refused_.empty()) text += base::format(" ({})", last_refused_);
  const bool by_name = !transport::SocketAddress::numeric(meeting_.master, meeting_.port);
  if (address_.loopback() && by_name && meeting_.local_ranks != meeting_.ranks) {
    text += base::format(
        "; {} is {} here, where no other machine can call: give the address of "
        "rank 0's machine instead of its name",
        meeting_.master, address_.host());
  }
  return {Code::DeadlineExceeded, text};
}

std::string RendezvousServer::who() const { return base::format("rank 0 at {}", address_.text()); }

}  // namespace sluice::bootstrap
