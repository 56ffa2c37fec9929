// mpirun starts the ranks: `mpirun -np N transport_mpi_test`. Every rank runs every test, in the
// same order.
#include "transport/mpi/mpi.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/format.h"
#include "tests/engine/counters.h"

namespace sluice::transport {
namespace {

constexpr std::array<std::size_t, 8> kSizes{0, 1, 13, 4096, 4097, 300'000, 3'000'000, 5};

const MpiWorld& world() {
  static const MpiWorld kFound = mpi_world("node", base::format("host of {}", getpid())).value();
  return kFound;
}

bool wait_for(Network& network, const std::function<bool()>& done,
              std::chrono::milliseconds time = std::chrono::seconds{20}) {
  Doorbell bell;
  return wait_until(bell, *network.waiter(), Clock::now() + time, WaitPolicy::with_shared_cores(),
                    done, [] {});
}

// Nearly unique for each sender, receiver, message and position in it.
std::byte content(Rank from, Rank to, std::size_t message, std::size_t at) {
  const std::uint64_t mixed =
      (((static_cast<std::uint64_t>(from) * 31 + static_cast<std::uint64_t>(to)) * 1'009 +
        message) *
           16'777'259 +
       at) *
      0x9E37'79B9'7F4A'7C15U;
  return static_cast<std::byte>(mixed >> 56U);
}

std::vector<std::byte> contents(Rank from, Rank to, std::size_t message, std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t at = 0; at < bytes; ++at) all[at] = content(from, to, message, at);
  return all;
}

MessageHeader header_of(std::size_t message, std::size_t bytes) {
  return {.signature = 77 + message, .number = message, .kind = 3, .count = bytes, .bytes = bytes};
}

// Reads messages as they arrive, in pieces of many sizes, with read() and consume() in turn.
class Reader {
 public:
  Reader(Network& network, Rank peer) : network_{&network}, peer_{peer} {}

  std::size_t messages() const { return messages_; }
  const std::vector<std::byte>& last() const { return last_; }

  // True: a message was read to its end.
  bool step() {
    const MessageHeader* const header = network_->incoming(peer_);
    if (header == nullptr) return false;
    const std::size_t bytes = header->bytes;
    if (here_.empty() && !begun_) {
      begun_ = true;
      EXPECT_EQ(header->number, messages_);
      EXPECT_EQ(header->signature, 77 + messages_);
      EXPECT_EQ(header->count, bytes);
    }
    const std::size_t wanted = 1 + (++pieces_ * 7'919) % 200'000;
    if (pieces_ % 2 == 0) {
      const std::size_t old = here_.size();
      here_.resize(std::min(bytes, old + wanted));
      here_.resize(old + network_->read(peer_, here_.data() + old, here_.size() - old));
    } else {
      const auto arrived = network_->arrived(peer_);
      const auto taken = arrived.first(std::min(wanted, arrived.size()));
      here_.insert(here_.end(), taken.begin(), taken.end());
      network_->consume(peer_, taken.size());
    }
    if (here_.size() < bytes) return false;
    last_.swap(here_);
    here_.clear();
    begun_ = false;
    ++messages_;
    return true;
  }

 private:
  Network* network_;
  Rank peer_;
  std::size_t messages_ = 0;
  std::size_t pieces_ = 0;
  bool begun_ = false;
  std::vector<std::byte> here_;
  std::vector<std::byte> last_;
};

// All pairs exchange messages in both directions at once. `label` distinguishes networks.
void exchange(Network& network, Rank rank, int ranks, std::size_t label) {
  std::vector<std::vector<std::vector<std::byte>>> sending(static_cast<std::size_t>(ranks));
  std::vector<Reader> readers;
  for (Rank peer = 0; peer < ranks; ++peer) {
    readers.emplace_back(network, peer);
    if (peer == rank) continue;
    auto& messages = sending[static_cast<std::size_t>(peer)];
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      messages.push_back(contents(rank, peer, label + i, kSizes[i]));
      network.send(peer, header_of(i, kSizes[i]), messages.back().data());
    }
  }
  EXPECT_TRUE(wait_for(network, [&] {
    bool all = true;
    for (Rank peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      Reader& reader = readers[static_cast<std::size_t>(peer)];
      while (reader.messages() < kSizes.size() && reader.step()) {
        const std::size_t i = reader.messages() - 1;
        EXPECT_TRUE(reader.last() == contents(peer, rank, label + i, kSizes[i]))
            << "message " << i << " from " << peer << " to " << rank;
      }
      const bool sent = network.sent(peer) == kSizes.size();
      all = all && sent && reader.messages() == kSizes.size();
    }
    return all;
  }));
}

// A barrier: every rank sends a message to all others and receives theirs.
void barrier(Network& network, Rank rank, int ranks, std::uint64_t number) {
  for (Rank peer = 0; peer < ranks; ++peer) {
    if (peer != rank) network.send(peer, header_of(number, 0), nullptr);
  }
  for (Rank peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    ASSERT_TRUE(wait_for(network, [&] { return network.incoming(peer) != nullptr; }));
    EXPECT_EQ(network.incoming(peer)->number, number);
    network.consume(peer, 0);
  }
}

class Mpi : public testing::Test {
 protected:
  void SetUp() override { alarm(50); }
  Rank rank_ = world().rank;
  int ranks_ = world().ranks;
};

TEST_F(Mpi, GathersTheNodeAndHostOfEveryRank) {
  EXPECT_TRUE(has_mpi());
  EXPECT_NE(mpi_description().find_first_of("0123456789"), std::string::npos);
  ASSERT_EQ(world().nodes.size(), static_cast<std::size_t>(ranks_));
  ASSERT_EQ(world().hosts.size(), static_cast<std::size_t>(ranks_));
  for (const std::string& node : world().nodes) EXPECT_EQ(node, "node");
  for (Rank peer = 0; peer < ranks_; ++peer) {
    EXPECT_EQ(world().hosts[static_cast<std::size_t>(peer)] == base::format("host of {}", getpid()),
              peer == rank_);
  }
}

TEST_F(Mpi, MessagesArriveCompleteAndInOrder) {
  const auto network = make_mpi_network().value();
  EXPECT_EQ(network->name(), "mpi");
  exchange(*network, rank_, ranks_, 0);
}

TEST_F(Mpi, TwoNetworksKeepTheirMessagesApart) {
  const auto first = make_mpi_network().value();
  const auto second = make_mpi_network().value();
  exchange(*second, rank_, ranks_, 100);
  exchange(*first, rank_, ranks_, 200);
}

std::int64_t nanoseconds_now() { return Clock::now().time_since_epoch().count(); }

// MPI makes progress only inside its own calls, and a rank that has sent may compute for a long
// time.
TEST_F(Mpi, ASentMessageArrivesWithoutFurtherCallsOfItsSender) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  const auto network = make_mpi_network().value();
  std::uint64_t number = 0;
  std::uint64_t sent = 0;
  for (const std::size_t bytes : {13, 5'000, 20'000, 32'768, 100'000}) {
    barrier(*network, rank_, ranks_, ++number);
    if (rank_ == 0) {
      const std::vector<std::byte> data = contents(0, 1, 0, bytes);
      network->send(1, header_of(0, bytes), data.data());
      sent += 2;
      ASSERT_TRUE(wait_for(*network, [&] { return network->sent(1) == sent; }));
      std::this_thread::sleep_for(std::chrono::milliseconds{200});
      MessageHeader next_call = header_of(1, 0);
      next_call.count = static_cast<std::uint64_t>(nanoseconds_now());
      network->send(1, next_call, nullptr);
      ++sent;
    } else if (rank_ == 1) {
      Reader reader{*network, 0};
      ASSERT_TRUE(wait_for(*network, [&] { return reader.step(); }));
      const std::int64_t arrived = nanoseconds_now();
      EXPECT_TRUE(reader.last() == contents(0, 1, 0, bytes)) << bytes << " bytes";
      ASSERT_TRUE(wait_for(*network, [&] { return network->incoming(0) != nullptr; }));
      EXPECT_LT(arrived, static_cast<std::int64_t>(network->incoming(0)->count))
          << bytes << " bytes";
      network->consume(0, 0);
    }
  }
}

TEST_F(Mpi, StatusUpdatesOvertakeMessagesAndTheNewestCounts) {
  const auto network = make_mpi_network().value();
  const std::vector<std::byte> data(3'000'000);
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    network->send(peer, header_of(0, data.size()), data.data());
    for (std::uint64_t i = 1; i <= 100; ++i) {
      network->send_status(peer, {.entered = i, .step = rank_, .waits_for = peer});
    }
  }
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    std::uint64_t newest = 0;
    EXPECT_TRUE(wait_for(*network, [&] {
      StatusUpdate update;
      if (network->receive_status(peer, update)) {
        EXPECT_GT(update.entered, newest);
        EXPECT_EQ(update.step, peer);
        EXPECT_EQ(update.waits_for, rank_);
        newest = update.entered;
      }
      return newest == 100;
    }));
    StatusUpdate update;
    EXPECT_FALSE(network->receive_status(peer, update));
  }
  std::vector<Reader> readers;
  for (Rank peer = 0; peer < ranks_; ++peer) readers.emplace_back(*network, peer);
  EXPECT_TRUE(wait_for(*network, [&] {
    bool all = true;
    for (Rank peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      Reader& reader = readers[static_cast<std::size_t>(peer)];
      const bool sent = network->sent(peer) == 1;
      all = (reader.messages() == 1 || reader.step()) && sent && all;
    }
    return all;
  }));
}

TEST_F(Mpi, SplitsIntoOddAndEven) {
  const auto network = make_mpi_network().value();
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<Rank> members;  // in reverse order, so that ranks get new numbers
    for (Rank peer = ranks_ - 1; peer >= 0; --peer) {
      if (peer % 2 == rank_ % 2) members.push_back(peer);
    }
    const auto self = std::find(members.begin(), members.end(), rank_);
    const auto half =
        network->split(members, 10 + round, {Clock::now() + std::chrono::seconds{20}});
    ASSERT_TRUE(half.ok()) << half.status().message();
    exchange(*half.value(), static_cast<Rank>(self - members.begin()),
             static_cast<int>(members.size()), 300 + 10 * static_cast<std::size_t>(rank_ % 2));
    EXPECT_EQ(half.value()->waiter(), network->waiter());
  }
  barrier(*network, rank_, ranks_, 9);
}

TEST_F(Mpi, TheErrorOfASplitNamesARankThatHasNotCalledIt) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  const auto network = make_mpi_network().value();
  std::vector<Rank> all;
  for (Rank peer = 0; peer < ranks_; ++peer) all.push_back(peer);
  const Rank absent = ranks_ - 1;
  if (rank_ != absent) {
    const auto half = network->split(all, 1, {Clock::now() + std::chrono::milliseconds{300}});
    ASSERT_FALSE(half.ok());
    EXPECT_EQ(half.status().code(), Code::DeadlineExceeded);
    EXPECT_NE(half.status().message().find(base::format("rank {} ", absent)), std::string::npos)
        << half.status().message();
  }
  barrier(*network, rank_, ranks_, 1);
  // A failed split does not disturb the next one.
  const auto whole = network->split(all, 2, {Clock::now() + std::chrono::seconds{20}});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  exchange(*whole.value(), rank_, ranks_, 400);
}

TEST_F(Mpi, AGoodbyeIsReportedAfterAllMessagesAndTheOthersGoOn) {
  if (ranks_ < 2) GTEST_SKIP() << "needs two ranks";
  auto network = make_mpi_network().value();
  const std::vector<std::byte> data = contents(0, 0, 0, 3'000'000);
  if (rank_ == 0) {
    for (Rank peer = 1; peer < ranks_; ++peer) {
      network->send_status(peer, {.entered = 5});
      network->send(peer, header_of(0, data.size()), data.data());
      network->send(peer, header_of(1, 0), nullptr);
    }
    network.reset();
  } else {
    Reader reader{*network, 0};
    EXPECT_TRUE(wait_for(*network, [&] {
      EXPECT_EQ(network->death_of(0), "");
      return reader.step();
    }));
    EXPECT_TRUE(reader.last() == data);
    // The goodbye has arrived by now, but a message is still unread.
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    EXPECT_EQ(network->death_of(0), "");
    EXPECT_TRUE(wait_for(*network, [&] { return reader.step(); }));
    EXPECT_TRUE(wait_for(*network, [&] { return !network->death_of(0).empty(); }));
    EXPECT_NE(network->death_of(0).find("has left"), std::string::npos) << network->death_of(0);
    EXPECT_EQ(network->incoming(0), nullptr);
    StatusUpdate update;
    EXPECT_TRUE(network->receive_status(0, update));
    EXPECT_EQ(update.entered, 5U);
    for (Rank peer = 1; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      EXPECT_EQ(network->death_of(peer), "");
    }
    std::vector<Rank> rest;
    for (Rank peer = 1; peer < ranks_; ++peer) rest.push_back(peer);
    const auto half = network->split(rest, 3, {Clock::now() + std::chrono::seconds{20}});
    ASSERT_TRUE(half.ok()) << half.status().message();
    exchange(*half.value(), rank_ - 1, ranks_ - 1, 500);
  }
}

TEST_F(Mpi, ManyNetworksOneAfterAnother) {
  for (int i = 0; i < 50; ++i) {
    const auto network = make_mpi_network().value();
    barrier(*network, rank_, ranks_, static_cast<std::uint64_t>(i));
  }
}

TEST_F(Mpi, TheSteadyStateAllocatesNothing) {
  const auto network = make_mpi_network().value();
  const std::vector<std::byte> data(1'000'000);
  const Rank next = (rank_ + 1) % ranks_;
  const Rank last = (rank_ + ranks_ - 1) % ranks_;
  std::uint64_t sent = 0;
  const auto round = [&] {
    if (ranks_ == 1) return;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, data.size()}) {
      network->send(next, header_of(0, bytes), data.data());
      ++sent;
    }
    for (int messages = 0; messages < 3;) {
      if (const MessageHeader* const header = network->incoming(last); header != nullptr) {
        const std::uint64_t left = header->bytes;
        std::uint64_t here = 0;
        do {
          const std::size_t part = network->arrived(last).size();
          network->consume(last, part);
          here += part;
          network->sent(next);
        } while (here < left);
        ++messages;
      }
      network->sent(next);
    }
    while (network->sent(next) < sent) std::this_thread::yield();
    network->send_status(next, {.entered = sent});
    StatusUpdate update;
    network->receive_status(last, update);
  };
  for (int i = 0; i < 20; ++i) round();
  const auto before = engine::allocations();
  for (int i = 0; i < 20; ++i) round();
  EXPECT_EQ(engine::allocations(), before);
}

}  // namespace
}  // namespace sluice::transport
