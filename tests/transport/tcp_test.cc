#include "transport/tcp/tcp.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include "tests/transport/network_conformance.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;

base::Fd listen_somewhere(std::uint16_t& port) {
  base::Fd listener = listen_at(*SocketAddress::numeric("127.0.0.1", 0));
  port = SocketAddress::of_socket(listener.number()).port();
  return listener;
}

// The options and wake descriptors of all ranks of a network.
struct NetworkSetup {
  std::vector<base::Fd> wake_descriptors;
  std::vector<TcpOptions> options;

  // `nodes` has the node of each rank. Ranks on one node have no connection.
  explicit NetworkSetup(const std::vector<int>& nodes, const std::string& token = "secret",
                        std::chrono::milliseconds patience = 20s) {
    std::vector<TcpAddress> addresses;
    std::vector<base::Fd> listeners;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      addresses.push_back({"127.0.0.1", 0});
      listeners.push_back(listen_somewhere(addresses.back().port));
    }
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      wake_descriptors.emplace_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
      TcpOptions own{.rank = static_cast<Rank>(rank),
                     .addresses = addresses,
                     .own_address = "127.0.0.1",
                     .listener = std::move(listeners[rank]),
                     .token = token,
                     .wake_descriptor = wake_descriptors.back().number(),
                     .deadline = Clock::now() + patience};
      for (std::size_t peer = 0; peer < nodes.size(); ++peer) {
        if (nodes[peer] == nodes[rank]) own.addresses[peer].port = 0;
      }
      options.push_back(std::move(own));
    }
  }

  std::vector<Rank> remote(Rank rank) const {
    std::vector<Rank> peers;
    const auto& addresses = options[static_cast<std::size_t>(rank)].addresses;
    for (std::size_t peer = 0; peer < addresses.size(); ++peer) {
      if (addresses[peer].port != 0) peers.push_back(static_cast<Rank>(peer));
    }
    return peers;
  }
};

using Body =
    std::function<std::string(std::unique_ptr<Network>, Rank, const std::vector<Rank>& peers)>;

void run(const std::vector<int>& nodes, const Body& body) {
  NetworkSetup setup{nodes};
  std::vector<std::string> errors(nodes.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < nodes.size(); ++r) {
      threads.emplace_back([&, r] {
        const auto rank = static_cast<Rank>(r);
        const std::vector<Rank> peers = setup.remote(rank);
        auto network = make_tcp_network(std::move(setup.options[r]));
        errors[r] = network.ok() ? body(std::move(network).value(), rank, peers)
                                 : network.status().message();
      });
    }
  }
  for (std::size_t r = 0; r < nodes.size(); ++r) EXPECT_EQ(errors[r], "") << "rank " << r;
}

std::vector<int> every_rank_a_node(int ranks) {
  std::vector<int> nodes(static_cast<std::size_t>(ranks));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

class Tcp : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Tcp, testing::Values(1, 2, 3, 7));

TEST_P(Tcp, MessagesArriveCompleteAndInOrderBetweenAllPairs) {
  run(every_rank_a_node(GetParam()), [](auto network, Rank rank, const auto& peers) {
    return network_conformance::all_to_all(*network, rank, peers);
  });
}

TEST_P(Tcp, TheNewestStatusUpdateCounts) {
  run(every_rank_a_node(GetParam()), [](auto network, Rank rank, const auto& peers) {
    return network_conformance::status_updates(*network, rank, peers);
  });
}

TEST_P(Tcp, MessagesSentBeforeLeavingArrive) {
  run(every_rank_a_node(GetParam()), [](auto network, Rank rank, const auto& peers) {
    return network_conformance::leaves(std::move(network), rank, peers);
  });
}

TEST(TcpNodes, RanksOfOneNodeAreNotConnected) {
  run({0, 0, 1, 1, 0}, [](auto network, Rank rank, const auto& peers) {
    return network_conformance::all_to_all(*network, rank, peers);
  });
}

TEST(TcpSplit, PartsHaveConnectionsOfTheirOwn) {
  run(every_rank_a_node(5), [](auto network, Rank rank, const auto& /*peers*/) -> std::string {
    const std::vector<Rank> members = rank % 2 == 0 ? std::vector{4, 0, 2} : std::vector{1, 3};
    const auto own =
        static_cast<Rank>(std::find(members.begin(), members.end(), rank) - members.begin());
    auto part =
        network->split(members, 100U + static_cast<unsigned>(rank % 2), {Clock::now() + 20s});
    if (!part.ok()) return part.status().message();
    std::vector<Rank> peers;
    for (Rank peer = 0; peer < std::ssize(members); ++peer) {
      if (peer != own) peers.push_back(peer);
    }
    return network_conformance::all_to_all(*part.value(), own, peers);
  });
}

TEST(TcpJoin, GarbageOnAConnectionDelaysNoRank) {
  NetworkSetup setup{{0, 1}};
  const std::uint16_t port = setup.options[1].addresses[0].port;
  const auto listener = *SocketAddress::numeric("127.0.0.1", port);
  const base::Fd client{socket(listener.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(connect(client.number(), listener.address(), listener.bytes()), 0);
  const std::string garbage(sizeof(TcpHello), 'x');
  ASSERT_GT(send(client.number(), garbage.data(), garbage.size(), 0), 0);
  std::jthread other{[&] {
    auto network = make_tcp_network(std::move(setup.options[1]));
    EXPECT_TRUE(network.ok());
  }};
  auto network = make_tcp_network(std::move(setup.options[0]));
  EXPECT_TRUE(network.ok()) << network.status().message();
}

TEST(TcpJoin, AWrongTokenIsRefusedAndTheErrorNamesTheMissingRank) {
  NetworkSetup setup{{0, 1}};
  setup.options[1].token = "guessed";
  for (TcpOptions& options : setup.options) options.deadline = Clock::now() + 300ms;
  std::jthread other{[&] {
    auto network = make_tcp_network(std::move(setup.options[1]));
    ASSERT_FALSE(network.ok());
    EXPECT_NE(network.status().message().find("no connection with rank 0"), std::string::npos)
        << network.status().message();
  }};
  auto network = make_tcp_network(std::move(setup.options[0]));
  ASSERT_FALSE(network.ok());
  EXPECT_NE(network.status().message().find("no connection with rank 1"), std::string::npos);
}

// The peer's window is closed for longer than a host may be silent, but its host answers.
TEST(TcpSilence, APeerThatComputesWhileItsWindowIsFullIsNotLost) {
  NetworkSetup setup{{0, 1}};
  for (TcpOptions& options : setup.options) options.longest_silence = 1s;
  constexpr std::size_t kBytes = std::size_t{64} << 20U;
  constexpr auto kComputes = 4s;
  std::jthread other{[&] {
    const auto network = make_tcp_network(std::move(setup.options[1])).value();
    std::this_thread::sleep_for(kComputes);
    std::vector<std::byte> data(kBytes);
    std::size_t done = 0;
    EXPECT_TRUE(network_conformance::eventually([&] {
      if (network->incoming(0) != nullptr)
        done += network->read(0, data.data() + done, kBytes - done);
      return done == kBytes;
    }));
    EXPECT_EQ(std::count(data.begin(), data.end(), std::byte{42}), std::ssize(data));
  }};
  const auto network = make_tcp_network(std::move(setup.options[0])).value();
  const std::vector<std::byte> data(kBytes, std::byte{42});
  network->send(1, {.bytes = kBytes}, data.data());
  const auto begin = Clock::now();
  EXPECT_TRUE(network_conformance::eventually([&] {
    network->send_status(1, {.entered = 1});
    EXPECT_EQ(network->death_of(1), "");
    std::this_thread::sleep_for(1ms);
    return network->sent(1) == 1 || testing::Test::HasFailure();
  }));
  EXPECT_GT(Clock::now() - begin, kComputes / 2) << "the window was never full";
}

// The last message of a handshake in which the client answers the challenge with this proof; empty
// when the connection is closed instead.
std::vector<std::byte> answers_to(const base::Fd& client, const TcpHello& hello,
                                  const std::function<TokenProof(const Nonce&)>& proof_for) {
  const timeval wait{2, 0};
  setsockopt(client.number(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  EXPECT_EQ(send(client.number(), &hello, sizeof hello, MSG_NOSIGNAL),
            static_cast<ssize_t>(sizeof hello));
  TcpChallenge challenge;
  EXPECT_EQ(recv(client.number(), &challenge, sizeof challenge, MSG_WAITALL),
            static_cast<ssize_t>(sizeof challenge));
  const TokenProof proof = proof_for(challenge.nonce);
  EXPECT_EQ(send(client.number(), &proof, sizeof proof, MSG_NOSIGNAL),
            static_cast<ssize_t>(sizeof proof));
  std::vector<std::byte> answer(sizeof(TokenProof));
  const ssize_t got = recv(client.number(), answer.data(), answer.size(), MSG_WAITALL);
  answer.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return answer;
}

// A stranger connects to rank 0 as rank 1 and makes a proof from the server's nonce.
class TcpStranger : public testing::Test {
 protected:
  void SetUp() override {
    const auto to = *SocketAddress::numeric("127.0.0.1", setup_.options[1].addresses[0].port);
    client_.reset(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client_.number(), to.address(), to.bytes()), 0);
    rank_0_ = std::jthread{[this] { (void)make_tcp_network(std::move(setup_.options[0])); }};
  }
  // Whether rank 0 admits the stranger.
  bool is_admitted(const std::function<TokenProof(const Nonce&)>& proof_for) {
    return !answers_to(client_, hello_, proof_for).empty();
  }

  NetworkSetup setup_{{0, 1}, "secret", 1s};
  TcpHello hello_{.from = 1, .to = 0, .ranks = 2, .nonce = new_nonce()};
  base::Fd client_;
  std::jthread rank_0_;
};

TEST_F(TcpStranger, WithTheTokenIsAdmittedAndRankZeroProvesItToo) {
  Nonce challenge{};
  const auto answer = answers_to(client_, hello_, [&](const Nonce& nonce) {
    challenge = nonce;
    return prove("secret", Side::Client, transcript_of(hello_, nonce)).value();
  });
  ASSERT_EQ(answer.size(), sizeof(TokenProof));
  TokenProof proof{};
  std::copy(answer.begin(), answer.end(), proof.begin());
  EXPECT_TRUE(is_proven("secret", Side::Server, transcript_of(hello_, challenge), proof));
}

TEST_F(TcpStranger, WithoutTheTokenIsClosed) {
  EXPECT_FALSE(is_admitted([&](const Nonce& nonce) {
    return prove("guessed", Side::Client, transcript_of(hello_, nonce)).value();
  }));
}

TEST_F(TcpStranger, AProofForAnotherRankOrChallengeIsClosed) {
  EXPECT_FALSE(is_admitted([&](const Nonce& nonce) {
    TcpHello of_rank_2 = hello_;
    of_rank_2.from = 2;
    return prove("secret", Side::Client, transcript_of(of_rank_2, nonce)).value();
  }));
}

TEST_F(TcpStranger, ARecordedProofIsClosed) {
  EXPECT_FALSE(is_admitted([&](const Nonce&) {
    return prove("secret", Side::Client, transcript_of(hello_, Nonce{})).value();
  }));
}

TEST_F(TcpStranger, TheServersOwnProofIsClosed) {
  EXPECT_FALSE(is_admitted([&](const Nonce& nonce) {
    return prove("secret", Side::Server, transcript_of(hello_, nonce)).value();
  }));
}

// A process that took rank 0's port answers rank 1.
TEST(TcpJoin, ARankAcceptsNoServerWithoutTheToken) {
  NetworkSetup setup{{0, 1}, "secret", 1s};
  base::Fd listener = std::move(setup.options[0].listener);
  std::jthread rank_1{[&] {
    auto network = make_tcp_network(std::move(setup.options[1]));
    EXPECT_FALSE(network.ok());
  }};
  base::Fd client;
  while (!client.open()) client.reset(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
  const timeval wait{2, 0};
  setsockopt(client.number(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  TcpHello hello;
  ASSERT_EQ(recv(client.number(), &hello, sizeof hello, MSG_WAITALL),
            static_cast<ssize_t>(sizeof hello));
  const std::string_view sent{reinterpret_cast<const char*>(&hello), sizeof hello};  // NOLINT
  EXPECT_EQ(sent.find("secret"), std::string_view::npos);
  const TcpChallenge challenge{.nonce = new_nonce()};
  ASSERT_GT(send(client.number(), &challenge, sizeof challenge, MSG_NOSIGNAL), 0);
  TokenProof proof{};
  ASSERT_EQ(recv(client.number(), &proof, sizeof proof, MSG_WAITALL),
            static_cast<ssize_t>(sizeof proof));
  EXPECT_TRUE(is_proven("secret", Side::Client, transcript_of(hello, challenge.nonce), proof));
  ASSERT_GT(send(client.number(), &proof, sizeof proof, MSG_NOSIGNAL),
            0);  // sent back to its maker
  char byte = 0;
  EXPECT_LE(recv(client.number(), &byte, 1, 0), 0) << "it closes the connection";
}

// The time for which a rank that finds nothing looks before it sleeps.
Clock::duration look_until_sleep(Waiter& waiter) {
  const auto begin = Clock::now();
  waiter.begin();
  while (waiter.next() != Waiter::Next::Sleep && Clock::now() - begin < 5s) continue;
  return Clock::now() - begin;
}

TEST(TcpSleep, ARankLooksForAMomentFirst) {
  NetworkSetup setup{{0}};
  const auto network = make_tcp_network(std::move(setup.options[0])).value();
  const auto waiter = network->waiter();
  const auto looked = look_until_sleep(*waiter);
  EXPECT_GE(looked, SpinRule::kLongest);
  EXPECT_LT(looked, 1s);
  Doorbell doorbell;
  (void)waiter->sleep(doorbell, 0, Clock::now() + 1ms);
  EXPECT_EQ(waiter->next(), Waiter::Next::Look) << "after it has slept";
}

TEST(TcpSleep, ARankThatMayNotSpinSleepsAtOnce) {
  NetworkSetup setup{{0}};
  setup.options[0].spins = false;
  const auto network = make_tcp_network(std::move(setup.options[0])).value();
  network->waiter()->begin();
  EXPECT_EQ(network->waiter()->next(), Waiter::Next::Sleep);
}

TEST(TcpSleep, LongWaitsForMessagesTeachARankToSleep) {
  NetworkSetup setup{{0, 1}};
  std::unique_ptr<Network> sender;
  std::jthread other{[&] { sender = make_tcp_network(std::move(setup.options[1])).value(); }};
  const auto receiver = make_tcp_network(std::move(setup.options[0])).value();
  other.join();
  constexpr int kMessages = 20;
  const std::byte data{1};
  std::jthread late{[&] {
    for (int i = 0; i < kMessages; ++i) {
      std::this_thread::sleep_for(3ms);
      sender->send(0, {.bytes = 1}, &data);
    }
  }};
  Doorbell doorbell;
  const auto waiter = receiver->waiter();
  int received = 0;
  const auto receive = [&] {
    while (receiver->incoming(1) != nullptr && !receiver->arrived(1).empty()) {
      receiver->consume(1, 1);
      ++received;
    }
    return received == kMessages;
  };
  ASSERT_TRUE(
      wait_until(doorbell, *waiter, Clock::now() + 10s, {.spins = 0, .yields = 0}, receive, [] {}));
  waiter->begin();
  EXPECT_EQ(waiter->next(), Waiter::Next::Sleep);
}

TEST(TcpSleep, AWaiterWakesForMessagesStatusUpdatesAndDoorbells) {
  NetworkSetup setup{{0, 1}};
  Doorbell doorbell;
  std::unique_ptr<Network> sender;
  std::jthread other{[&] { sender = make_tcp_network(std::move(setup.options[1])).value(); }};
  auto receiver = make_tcp_network(std::move(setup.options[0])).value();
  other.join();
  const auto waiter = receiver->waiter();
  while (!waiter->sleep(doorbell, 0, Clock::now() + 1ms)) continue;  // events of the handshake

  // A busy machine may wake a thread late, but not every time.
  const auto woken_by = [&](const std::function<void()>& act) {
    auto best = Clock::duration::max();
    for (int attempt = 0; attempt < 5 && best > 90ms; ++attempt) {
      std::jthread actor{[&] {
        std::this_thread::sleep_for(20ms);
        act();
      }};
      const auto start = Clock::now();
      (void)waiter->sleep(doorbell, 0, start + 5s);
      best = std::min(best, Clock::now() - start);
    }
    return best;
  };
  const std::byte data{1};
  EXPECT_LT(woken_by([&] { sender->send(0, {.bytes = 1}, &data); }), 90ms);
  EXPECT_LT(woken_by([&] { sender->send_status(0, {.entered = 1}); }), 90ms);
  EXPECT_LT(woken_by([&] { eventfd_write(setup.wake_descriptors[0].number(), 1); }), 90ms);
  for (int i = 0; i < 3; ++i) (void)waiter->sleep(doorbell, 0, Clock::now() + 1ms);  // late events
  EXPECT_GE(woken_by([] {}), 90ms);  // no event wakes twice
}

}  // namespace
}  // namespace sluice::transport
