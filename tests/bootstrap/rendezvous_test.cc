// The ranks are threads that meet at 127.0.0.1. Other clients connect to the same port.
#include "bootstrap/rendezvous/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "bootstrap/rendezvous/rendezvous_message.h"
#include "tests/base/has.h"
#include "transport/handshake.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::bootstrap {
namespace {

using std::chrono::milliseconds;

std::uint16_t free_port() {
  const base::Fd listener =
      transport::listen_at(*transport::SocketAddress::numeric("127.0.0.1", 0));
  return transport::SocketAddress::of_socket(listener.number()).port();
}

RendezvousOptions options_of(Rank rank, int ranks, std::uint16_t port, milliseconds timeout) {
  return {.rank = rank,
          .ranks = ranks,
          .token = "secret",
          .master = "127.0.0.1",
          .port = port,
          .deadline = transport::Clock::now() + timeout};
}

class Ranks {
 public:
  explicit Ranks(int ranks, milliseconds timeout = milliseconds{5000})
      : ranks_{ranks}, port_{free_port()}, timeout_{timeout} {}

  RendezvousOptions options(Rank rank) const { return options_of(rank, ranks_, port_, timeout_); }
  std::uint16_t port() const { return port_; }

  void start(const RendezvousOptions& options) {
    results_.push_back(std::async(std::launch::async, [options] { return rendezvous(options); }));
  }
  void start(Rank rank) { start(options(rank)); }

  // The results, in the order in which the ranks were started.
  std::vector<Result<RendezvousResult>> finish() {
    std::vector<Result<RendezvousResult>> all;
    for (auto& result : results_) all.push_back(result.get());
    return all;
  }

 private:
  int ranks_;
  std::uint16_t port_;
  milliseconds timeout_;
  std::vector<std::future<Result<RendezvousResult>>> results_;
};

// Tries until rank 0 listens there.
base::Fd connect_to(std::uint16_t port) {
  const transport::SocketAddress master = *transport::SocketAddress::numeric("127.0.0.1", port);
  const auto deadline = transport::Clock::now() + milliseconds{3000};
  while (transport::Clock::now() < deadline) {
    base::Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (connect(socket.number(), master.address(), master.bytes()) == 0) return socket;
    std::this_thread::sleep_for(milliseconds{5});
  }
  return base::Fd{};
}

void send_bytes(const base::Fd& socket, const std::string& bytes) {
  ASSERT_EQ(send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// The next message. A message without a kind if none comes within 3 seconds or the stream is
// closed.
RendezvousMessage next_message(MessageStream& stream) {
  RendezvousMessage message;
  const auto deadline = transport::Clock::now() + milliseconds{3000};
  while (transport::Clock::now() < deadline) {
    const auto state = stream.read(message);
    if (state == MessageStream::State::Arrived) return message;
    if (state != MessageStream::State::Nothing) break;
    std::this_thread::sleep_for(milliseconds{1});
  }
  return {};
}

Hello hello_of(Rank rank, int ranks) {
  return {.rank = rank,
          .ranks = ranks,
          .local_ranks = 0,
          .milliseconds_left = 5000,
          .nonce = transport::new_nonce(),
          .self = {.host = "b", .node = "n", .address = "127.0.0.1", .port = 9, .process = 1}};
}

void send_message(MessageStream& stream, std::string message) {
  EXPECT_TRUE(stream.send(std::make_shared<const std::string>(std::move(message))));
}

// Makes the proof of a client, of its hello's body and the server's challenge.
using MakeProof = std::function<transport::TokenProof(std::string_view, const transport::Nonce&)>;

transport::TokenProof right_proof(std::string_view hello, const transport::Nonce& challenge) {
  return transport::prove("secret", transport::Side::Client, transcript_of(hello, challenge))
      .value();
}

// Sends a hello, answers the challenge, and returns the server's verdict.
RendezvousMessage verdict_on(MessageStream& stream, const Hello& hello,
                             const MakeProof& make_proof = right_proof) {
  const std::string message = hello_message(hello);
  send_message(stream, message);
  RendezvousMessage answer = next_message(stream);
  if (answer.kind != RendezvousMessageKind::Challenge) return answer;
  const transport::Nonce challenge = read_challenge(answer.body).value();
  send_message(stream, proof_message(make_proof(body_of(message), challenge)));
  return next_message(stream);
}

void expect_all_joined(Ranks& ranks, int count) {
  const auto results = ranks.finish();
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().message();
  for (const auto& result : results) {
    ASSERT_EQ(result.value().participants.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(result.value().interface, "lo");
    for (std::size_t i = 0; i < results.size(); ++i) {
      const RankInfo& info = result.value().participants[i];
      EXPECT_EQ(info.address, "127.0.0.1");
      EXPECT_EQ(info.host, host_name());
      EXPECT_EQ(info.node, node_identity());
      EXPECT_EQ(info.process, getpid());
      // Every rank must know the port of rank i's own listener. The callers start ranks in order.
      EXPECT_EQ(info.port,
                transport::SocketAddress::of_socket(results[i].value().listener.number()).port());
    }
  }
}

TEST(Rendezvous, EveryRankReceivesTheAddressesOfAllRanks) {
  for (const int count : {1, 2, 3, 7, 13}) {
    SCOPED_TRACE(count);
    Ranks ranks{count};
    for (Rank rank = 0; rank < count; ++rank) ranks.start(rank);
    expect_all_joined(ranks, count);
  }
}

TEST(Rendezvous, RankZeroMayStartLast) {
  Ranks ranks{3};
  std::vector<std::future<Result<RendezvousResult>>> early;
  for (const Rank rank : {1, 2})
    early.push_back(
        std::async(std::launch::async, [m = ranks.options(rank)] { return rendezvous(m); }));
  std::this_thread::sleep_for(milliseconds{150});
  EXPECT_TRUE(rendezvous(ranks.options(0)).ok());
  for (auto& result : early) EXPECT_TRUE(result.get().ok());
}

TEST(Rendezvous, ListenersAcceptConnectionsAndDoNotBlock) {
  Ranks ranks{2};
  ranks.start(0);
  ranks.start(1);
  const auto results = ranks.finish();
  ASSERT_TRUE(results[0].ok() && results[1].ok());
  const RendezvousResult& one = results[1].value();
  EXPECT_LT(accept(one.listener.number(), nullptr, nullptr), 0);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(connect_to(results[0].value().participants[1].port).open());
  EXPECT_GE(base::Fd{accept(one.listener.number(), nullptr, nullptr)}.number(), 0);
}

TEST(Rendezvous, WorksByHostNameAndOverIpv6) {
  for (const char* master : {"localhost", "::1"}) {
    if (!transport::listen_at(*transport::SocketAddress::numeric(std::string{"::1"}, 0)).open() &&
        std::string{master} == "::1")
      GTEST_SKIP() << "this machine has no IPv6";
    Ranks ranks{3};
    for (Rank rank = 0; rank < 3; ++rank) {
      RendezvousOptions options = ranks.options(rank);
      options.master = master;
      ranks.start(options);
    }
    for (const auto& result : ranks.finish())
      EXPECT_TRUE(result.ok()) << master << ": " << result.status().message();
  }
}

TEST(Rendezvous, AClientWithAWrongTokenIsRefusedAndTheOthersJoin) {
  for (const char* token : {"secreT", "secre", "secretsecret", ""}) {
    Ranks ranks{3};
    ranks.start(0);
    ranks.start(1);
    RendezvousOptions wrong = ranks.options(2);
    wrong.token = token;
    const auto refused = rendezvous(wrong);
    EXPECT_EQ(refused.status().code(), Code::InvalidArgument);
    EXPECT_TRUE(
        base::has(refused.status().message(), "refused this process: its token is not that of"))
        << refused.status().message();
    ranks.start(2);
    expect_all_joined(ranks, 3);
  }
}

TEST(Rendezvous, ARefusalGivesTheReason) {
  Ranks ranks{3};
  ranks.start(0);
  const auto refusal = [&](const Hello& hello) {
    MessageStream stream{connect_to(ranks.port())};
    const RendezvousMessage message = verdict_on(stream, hello);
    return message.kind == RendezvousMessageKind::Refusal ? read_refusal(message.body)
                                                          : "not refused";
  };
  EXPECT_EQ(refusal(hello_of(1, 4)), "it counts 4 ranks, not 3");
  EXPECT_EQ(refusal(hello_of(3, 3)), "rank 3 is not one of 3 ranks");
  EXPECT_EQ(refusal(hello_of(-1, 3)), "rank 4294967295 is not one of 3 ranks");
  EXPECT_EQ(refusal(hello_of(0, 3)), "rank 0 on host " + host_name() +
                                         " has joined already; every process needs a rank of its "
                                         "own");
  Hello crowded = hello_of(1, 3);
  crowded.local_ranks = 2'000'000'000;
  EXPECT_EQ(refusal(crowded), "it counts 2000000000 ranks on its host, but there are 3 in all");
  Hello bad = hello_of(1, 3);
  bad.self.address = "somewhere";
  EXPECT_EQ(refusal(bad), "it sent no valid hello");
  ranks.start(1);
  ranks.start(2);
  expect_all_joined(ranks, 3);
}

TEST(Rendezvous, OnlyAProofOfTheTokenIsWelcome) {
  Ranks ranks{3};
  ranks.start(0);
  const auto verdict = [&](const MakeProof& make_proof) {
    MessageStream stream{connect_to(ranks.port())};
    const RendezvousMessage message = verdict_on(stream, hello_of(7, 3), make_proof);
    return message.kind == RendezvousMessageKind::Refusal ? read_refusal(message.body) : "welcome";
  };
  const auto prove = [](std::string_view token, transport::Side side, std::string_view hello,
                        const transport::Nonce& challenge) {
    return transport::prove(token, side, transcript_of(hello, challenge)).value();
  };
  using transport::Nonce;
  using transport::Side;
  EXPECT_EQ(verdict([&](auto hello, const Nonce& challenge) {
              return prove("guessed", Side::Client, hello, challenge);
            }),
            transport::kWrongToken);
  EXPECT_EQ(verdict([&](auto hello, const Nonce&) {  // recorded from another handshake
              return prove("secret", Side::Client, hello, Nonce{});
            }),
            transport::kWrongToken);
  EXPECT_EQ(verdict([&](auto hello, const Nonce& challenge) {  // made by a server
              return prove("secret", Side::Server, hello, challenge);
            }),
            transport::kWrongToken);
  EXPECT_EQ(verdict([&](auto, const Nonce& challenge) {  // of another rank's hello
              const std::string other = hello_message(hello_of(1, 3));
              return prove("secret", Side::Client, body_of(other), challenge);
            }),
            transport::kWrongToken);
  EXPECT_EQ(verdict(right_proof), "rank 7 is not one of 3 ranks") << "a stranger does not learn it";
  ranks.start(1);
  ranks.start(2);
  expect_all_joined(ranks, 3);
}

// Rank 1 of two, which connects to the test as its server.
class ServedClient {
 public:
  ServedClient() {
    const std::uint16_t port = transport::SocketAddress::of_socket(listener_.number()).port();
    result = std::async(std::launch::async,
                        [=] { return rendezvous(options_of(1, 2, port, milliseconds{2000})); });
    base::Fd accepted;
    while (!accepted.open()) accepted.reset(accept(listener_.number(), nullptr, nullptr));
    stream = MessageStream{std::move(accepted)};
  }

 private:
  base::Fd listener_ = transport::listen_at(*transport::SocketAddress::numeric("127.0.0.1", 0));

 public:
  std::future<Result<RendezvousResult>> result;
  MessageStream stream{base::Fd{}};
};

// The server does not know the token, and sends the client's own proof back.
TEST(Rendezvous, AClientLeavesAServerThatDoesNotKnowTheToken) {
  ServedClient client;
  const RendezvousMessage hello = next_message(client.stream);
  ASSERT_EQ(hello.kind, RendezvousMessageKind::Hello);
  EXPECT_EQ(hello.body.find("secret"), std::string::npos);
  const transport::Nonce challenge = transport::new_nonce();
  send_message(client.stream, challenge_message(challenge));
  const RendezvousMessage proof = next_message(client.stream);
  ASSERT_EQ(proof.kind, RendezvousMessageKind::Proof);
  const transport::TokenProof theirs = read_proof(proof.body).value();
  EXPECT_EQ(theirs, right_proof(hello.body, challenge));
  send_message(client.stream, welcome_message(theirs));
  EXPECT_TRUE(
      base::has(client.result.get().status().message(), "does not know the token of this job"));
}

TEST(Rendezvous, ADuplicateRankIsRefused) {
  Ranks ranks{3};
  ranks.start(0);
  auto one = std::async(std::launch::async, [&] { return rendezvous(ranks.options(1)); });
  auto other = std::async(std::launch::async, [&] { return rendezvous(ranks.options(1)); });
  while (one.wait_for(milliseconds{1}) != std::future_status::ready &&
         other.wait_for(milliseconds{1}) != std::future_status::ready) {
  }
  const bool first = one.wait_for(milliseconds{0}) == std::future_status::ready;
  const auto refused = (first ? one : other).get();
  EXPECT_TRUE(base::has(refused.status().message(), "has joined already"))
      << refused.status().message();
  EXPECT_TRUE(rendezvous(ranks.options(2)).ok());
  EXPECT_TRUE((first ? other : one).get().ok());
}

TEST(Rendezvous, ARefusalNamesAnotherVersion) {
  Ranks ranks{2};
  ranks.start(0);
  MessageStream stream{connect_to(ranks.port())};
  std::string bytes = hello_message(hello_of(1, 2));
  bytes[4] = 9;
  ASSERT_TRUE(stream.send(std::make_shared<const std::string>(bytes)));
  EXPECT_TRUE(base::has(read_refusal(next_message(stream).body), "it speaks version 9"));
  ranks.start(1);
  expect_all_joined(ranks, 2);
}

TEST(Rendezvous, UnknownClientsDelayNothing) {
  Ranks ranks{2};
  ranks.start(0);
  std::vector<base::Fd> unknown;
  for (int i = 0; i < 200; ++i) unknown.push_back(connect_to(ranks.port()));  // these send nothing
  std::mt19937 random{7};  // NOLINT: the same garbage every time
  for (int i = 0; i < 20; ++i) {
    std::string garbage(static_cast<std::size_t>(1 + random() % 3000), '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    unknown.push_back(connect_to(ranks.port()));
    send_bytes(unknown.back(), garbage);
  }
  const std::string hello = hello_message(hello_of(1, 2));
  for (const std::size_t cut : {1, 4, 11, 12, 30}) {  // the start of a valid hello
    unknown.push_back(connect_to(ranks.port()));
    send_bytes(unknown.back(), hello.substr(0, cut));
  }
  std::string endless = hello;
  endless[11] = 0x7f;  // a length of 2 GB
  unknown.push_back(connect_to(ranks.port()));
  send_bytes(unknown.back(), endless);
  const auto began = transport::Clock::now();
  ranks.start(1);
  expect_all_joined(ranks, 2);
  EXPECT_LT(transport::Clock::now() - began, milliseconds{2000});
}

TEST(Rendezvous, ASlowClientCanJoin) {
  Ranks ranks{2};
  ranks.start(0);
  base::Fd socket = connect_to(ranks.port());
  const std::string hello = hello_message(hello_of(1, 2));
  for (const char c : hello) {
    send_bytes(socket, std::string{c});
    std::this_thread::sleep_for(std::chrono::microseconds{500});
  }
  MessageStream stream{std::move(socket)};
  const RendezvousMessage challenge = next_message(stream);
  ASSERT_EQ(challenge.kind, RendezvousMessageKind::Challenge);
  send_message(stream,
               proof_message(right_proof(body_of(hello), read_challenge(challenge.body).value())));
  EXPECT_EQ(next_message(stream).kind, RendezvousMessageKind::Welcome);
  const RendezvousMessage table = next_message(stream);
  ASSERT_EQ(table.kind, RendezvousMessageKind::Table);
  EXPECT_EQ(read_table(table.body, 2).value()[1].host, "b");
  EXPECT_FALSE(read_table(table.body, 3));
  EXPECT_FALSE(read_table(table.body, 1));
  EXPECT_TRUE(ranks.finish()[0].ok());
}

TEST(Rendezvous, AtTheDeadlineEveryErrorNamesTheMissingRanks) {
  Ranks ranks{4, milliseconds{600}};
  for (const Rank rank : {0, 1, 3}) ranks.start(rank);
  const auto began = transport::Clock::now();
  const auto results = ranks.finish();
  EXPECT_LT(transport::Clock::now() - began, milliseconds{1500});
  const std::string sentence = "rank 0 at 127.0.0.1:" + std::to_string(ranks.port()) +
                               ": 3 of 4 ranks joined, waiting for rank 2";
  EXPECT_EQ(results[0].status().message(), sentence);
  EXPECT_EQ(results[1].status().message(), "rank 1: not all ranks joined: " + sentence);
  EXPECT_EQ(results[2].status().message(), "rank 3: not all ranks joined: " + sentence);
  for (const auto& result : results) EXPECT_EQ(result.status().code(), Code::DeadlineExceeded);
}

TEST(Rendezvous, WithoutRankZeroTheErrorHasItsAddress) {
  Ranks ranks{2, milliseconds{300}};
  ranks.start(1);
  const auto result = ranks.finish();
  EXPECT_EQ(result[0].status().code(), Code::DeadlineExceeded);
  EXPECT_EQ(result[0].status().message(),
            "rank 1: rank 0 did not answer at 127.0.0.1:" + std::to_string(ranks.port()) +
                " in time (Connection refused); does it run there, and is the port open?");
}

TEST(Rendezvous, EveryErrorNamesARankThatLeft) {
  Ranks ranks{4};
  ranks.start(0);
  MessageStream leaver{connect_to(ranks.port())};
  ASSERT_EQ(verdict_on(leaver, hello_of(3, 4)).kind, RendezvousMessageKind::Welcome);
  MessageStream other{connect_to(ranks.port())};
  ASSERT_EQ(verdict_on(other, hello_of(1, 4)).kind, RendezvousMessageKind::Welcome);
  leaver = MessageStream{base::Fd{}};
  const auto results = ranks.finish();
  EXPECT_EQ(results[0].status().code(), Code::PeerLost);
  EXPECT_TRUE(
      base::has(results[0].status().message(), "rank 3 on host b left before all ranks had joined"))
      << results[0].status().message();
  const RendezvousMessage message = next_message(other);
  ASSERT_EQ(message.kind, RendezvousMessageKind::Failure);
  EXPECT_EQ(read_failure(message.body).code(), Code::PeerLost);
  EXPECT_EQ(read_failure(message.body).message(), results[0].status().message());
}

// The result of rank 1 when its server answers with these bytes and closes the connection; with
// `proves`, after a challenge and the server's proof.
Result<RendezvousResult> rendezvous_answered_with(const std::string& bytes, bool proves = false) {
  ServedClient client;
  const RendezvousMessage hello = next_message(client.stream);
  EXPECT_EQ(hello.kind, RendezvousMessageKind::Hello);
  if (proves) {
    const transport::Nonce challenge = transport::new_nonce();
    send_message(client.stream, challenge_message(challenge));
    EXPECT_EQ(next_message(client.stream).kind, RendezvousMessageKind::Proof);
    send_message(client.stream,
                 welcome_message(transport::prove("secret", transport::Side::Server,
                                                  transcript_of(hello.body, challenge))
                                     .value()));
  }
  send_message(client.stream, bytes);
  client.stream = MessageStream{base::Fd{}};
  return client.result.get();
}

TEST(Rendezvous, AnInvalidAnswerIsAnError) {
  EXPECT_TRUE(
      base::has(rendezvous_answered_with("HTTP/1.0 400 Bad Request\r\n\r\n").status().message(),
                "is not rank 0 of a Sluice job"));
  for (const bool proves : {false, true})
    EXPECT_TRUE(base::has(rendezvous_answered_with(table_message({}), proves).status().message(),
                          "sent an invalid message"));
  // Without a proof nothing but a refusal counts.
  const std::string table = table_message({hello_of(0, 2).self, hello_of(1, 2).self});
  const std::string failed = failure_message({Code::PeerLost, "rank 7 left"});
  for (const std::string& message : {table, failed, welcome_message({}), proof_message({})})
    EXPECT_TRUE(
        base::has(rendezvous_answered_with(message).status().message(), "sent an invalid message"));
  EXPECT_TRUE(rendezvous_answered_with(table, true).ok());
  EXPECT_TRUE(base::has(rendezvous_answered_with(failed, true).status().message(),
                        "not all ranks joined: rank 7 left"));
  EXPECT_TRUE(base::has(rendezvous_answered_with("", true).status().message(),
                        "was lost before all 2 ranks had joined"));
  EXPECT_TRUE(base::has(rendezvous_answered_with(refusal_message("a\nb\x1b[1m")).status().message(),
                        "refused this process: a?b?[1m"));
}

TEST(Rendezvous, AnInterfaceIsGivenByNameOrAddress) {
  for (const char* interface : {"lo", "127.0.0.1"}) {
    Ranks ranks{2};
    for (const Rank rank : {0, 1}) {
      RendezvousOptions options = ranks.options(rank);
      options.interface = interface;
      ranks.start(options);
    }
    expect_all_joined(ranks, 2);
  }
}

TEST(Rendezvous, TheErrorOfAnUnknownInterfaceListsAllInterfaces) {
  for (const char* interface : {"nosuch0", "203.0.113.77"}) {
    RendezvousOptions options = Ranks{2}.options(1);
    options.interface = interface;
    const Status status = rendezvous(options).status();
    EXPECT_TRUE(base::has(status.message(), std::string{"has no interface \""} + interface + "\""));
    EXPECT_TRUE(base::has(status.message(), "lo (127.0.0.1")) << status.message();
  }
}

TEST(Rendezvous, RankZeroMustRunAtTheMaster) {
  RendezvousOptions options = Ranks{2}.options(0);
  options.master = "203.0.113.77";  // reserved for documentation: no machine has it
  EXPECT_TRUE(base::has(rendezvous(options).status().message(),
                        "203.0.113.77) is not this machine: host " + host_name() + " has "))
      << rendezvous(options).status().message();
  options.master = "0.0.0.0";
  EXPECT_TRUE(base::has(rendezvous(options).status().message(),
                        "is not an address that others can connect to"));
}

TEST(Rendezvous, TheErrorNamesAPortInUse) {
  const base::Fd other = transport::listen_at(*transport::SocketAddress::numeric("127.0.0.1", 0));
  const std::uint16_t port = transport::SocketAddress::of_socket(other.number()).port();
  const Status status = rendezvous(options_of(0, 2, port, milliseconds{200})).status();
  EXPECT_TRUE(
      base::has(status.message(), "port " + std::to_string(port) + " of 127.0.0.1 is in use"))
      << status.message();
}

TEST(Rendezvous, InvalidOptionsFailAtOnce) {
  EXPECT_TRUE(base::has(rendezvous(options_of(2, 2, 1, milliseconds{100})).status().message(),
                        "cannot join"));
  RendezvousOptions options = options_of(1, 2, 1, milliseconds{100});
  options.token = std::string(256, 'x');
  EXPECT_TRUE(base::has(rendezvous(options).status().message(), "token has 256 characters"));
  EXPECT_TRUE(base::has(rendezvous(options_of(1, 2, 0, milliseconds{100})).status().message(),
                        "SLUICE_PORT"));
}

TEST(Rendezvous, ReportsProgressButNotTooOften) {
  Ranks ranks{3, milliseconds{2600}};
  std::mutex mutex;
  std::vector<std::string> server_reports;
  RendezvousOptions options = ranks.options(0);
  options.local_ranks = 3;
  options.report = [&](const std::string& line) {
    const std::lock_guard lock{mutex};
    server_reports.push_back(line);
  };
  ranks.start(options);
  std::vector<std::string> client_reports;
  RendezvousOptions lonely = options_of(1, 2, free_port(), milliseconds{2300});
  lonely.report = [&](const std::string& line) { client_reports.push_back(line); };
  auto unanswered = std::async(std::launch::async, [&] { return rendezvous(lonely); });
  std::this_thread::sleep_for(milliseconds{1300});
  RendezvousOptions one = ranks.options(1);
  one.local_ranks = 3;
  ranks.start(one);
  (void)ranks.finish();
  EXPECT_EQ(server_reports, (std::vector<std::string>{
                                "1 of 3 ranks joined, waiting for 2 on host " + host_name(),
                                "2 of 3 ranks joined, waiting for 1 on host " + host_name()}));
  EXPECT_FALSE(unanswered.get().ok());
  EXPECT_EQ(client_reports,
            std::vector<std::string>{"connecting to 127.0.0.1:" + std::to_string(lonely.port)});
}

TEST(Node, ItsIdentityDoesNotChange) {
  EXPECT_EQ(node_identity(), node_identity());
  EXPECT_TRUE(base::has(node_identity(), "/"));
  EXPECT_FALSE(host_name().empty());
}

}  // namespace
}  // namespace sluice::bootstrap
