// Shared memory of processes: they join, access each other's memory, and notice a dead peer.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/format.h"
#include "tests/base/has.h"
#include "tests/transport/processes.h"
#include "transport/group.h"
#include "transport/memory/memory.h"
#include "transport/memory/node_join.h"

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;
using testing_processes::as;
using testing_processes::run_ranks;
using testing_processes::unique_job;

// Waits until every rank has called it `times` times.
void barrier(const Group& group, std::uint64_t times) {
  group.own_board().entered.store(times);
  for (Rank rank = 0; rank < group.size(); ++rank) {
    while (group.board(rank).entered.load() < times) std::this_thread::sleep_for(100us);
  }
}

// Sends the id of a memory block to all ranks and returns the ids of all ranks.
std::vector<std::uint64_t> exchange(const Group& group, std::uint64_t id, std::uint64_t times) {
  group.own_board().count.store(id);
  barrier(group, times);
  std::vector<std::uint64_t> ids;
  for (Rank rank = 0; rank < group.size(); ++rank) ids.push_back(group.board(rank).count.load());
  return ids;
}

std::byte pattern(Rank rank, std::size_t at) {
  return static_cast<std::byte>(31 * rank + 7 * at + at / 251 + 1);
}

int mappings() {
  std::ifstream maps{"/proc/self/maps"};
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:sluice") != std::string::npos ? 1 : 0;
  return count;
}

std::size_t open_files() {
  const std::filesystem::directory_iterator folder{"/proc/self/fd"};
  return static_cast<std::size_t>(std::distance(begin(folder), end(folder)));
}

class ShmOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ShmOf, testing::Values(1, 2, 3, 7));

TEST_P(ShmOf, EveryRankReadsAndWritesTheMemoryOfAllOthers) {
  constexpr std::size_t kBytes = 10000;  // for each pair
  const int n = GetParam();
  const std::string job = base::format("test-{}-{}", getpid(), n);
  const auto results = run_ranks(n, [&](Rank me) -> std::string {
    const auto group = make_shm_group(as(me, n, job)).value();
    const MemoryBlock own = group->memory().allocate(kBytes * static_cast<std::size_t>(n)).value();
    if (std::any_of(own.data, own.data + own.bytes, [](std::byte b) { return b != std::byte{0}; }))
      return "not zeroed";
    const auto ids = exchange(*group, own.id, 1);
    for (Rank peer = 0; peer < n; ++peer) {  // writes this rank's part of every peer's block
      std::byte* const part =
          group->address(peer, {ids[static_cast<std::size_t>(peer)], kBytes * me}).value();
      for (std::size_t i = 0; i < kBytes; ++i) part[i] = pattern(me * n + peer, i);
    }
    barrier(*group, 2);
    for (Rank peer = 0; peer < n; ++peer) {  // checks all blocks, its own one included
      for (Rank writer = 0; writer < n; ++writer) {
        const std::byte* const part =
            group->address(peer, {ids[static_cast<std::size_t>(peer)], kBytes * writer}).value();
        for (std::size_t i = 0; i < kBytes; ++i) {
          if (part[i] != pattern(writer * n + peer, i))
            return base::format("byte {} of {} from {}", i, peer, writer);
        }
      }
    }
    barrier(*group, 3);
    return "";
  });
  for (const std::string& text : results) EXPECT_EQ(text, "");
}

TEST(Shm, MapsAPeersMemoryBlockWhenItIsFirstNamed) {
  const auto results = run_ranks(2, [job = unique_job()](Rank me) -> std::string {
    const auto group = make_shm_group(as(me, 2, job)).value();
    const MemoryBlock one = group->memory().allocate(5000).value();
    (void)group->memory().allocate(5000).value();
    const auto ids = exchange(*group, one.id, 1);
    const int before = mappings();
    std::byte* const first =
        group->address(1 - me, {ids[static_cast<std::size_t>(1 - me)], 0}).value();
    const int after = mappings();
    if (group->address(1 - me, {ids[static_cast<std::size_t>(1 - me)], 4999}).value() !=
        first + 4999)
      return "elsewhere";
    barrier(*group, 2);
    return after == before + 1 && mappings() == after
               ? ""
               : base::format("{}, {}, {}", before, after, mappings());
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", ""}));
}

TEST(Shm, ReleasedMemoryBlocksLeaveNoMappingsBehind) {
  const auto results = run_ranks(2, [job = unique_job()](Rank me) -> std::string {
    const auto group = make_shm_group(as(me, 2, job)).value();
    const int before = mappings();
    for (std::uint64_t round = 0; round < 60; ++round) {
      const MemoryBlock own = group->memory().allocate(1 + 3000 * (round * 37 % 23)).value();
      own.data[0] = pattern(me, round);
      const auto ids = exchange(*group, own.id, 2 * round + 1);
      const std::byte seen =
          *group->address(1 - me, {ids[static_cast<std::size_t>(1 - me)], 0}).value();
      if (seen != pattern(1 - me, round)) return base::format("round {}: old bytes", round);
      barrier(*group, 2 * round + 2);
      group->memory().release(own);
    }
    return mappings() <= before + 1 ? ""
                                    : base::format("{} mappings, {} at first", mappings(), before);
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", ""}));
}

TEST(Shm, RefusesAnInvalidMemoryBlock) {
  const auto results = run_ranks(2, [job = unique_job()](Rank me) -> std::string {
    const auto group = make_shm_group(as(me, 2, job)).value();
    const MemoryBlock own = group->memory().allocate(4096).value();
    const auto ids = exchange(*group, own.id, 1);
    const std::uint64_t theirs = ids[static_cast<std::size_t>(1 - me)];
    std::string wrong;
    for (const MemoryLocation location : {MemoryLocation{theirs, 1 << 20}, MemoryLocation{0, 0},
                                          MemoryLocation{~std::uint64_t{0}, 0}}) {
      if (group->address(1 - me, location).ok()) wrong += base::format("{:x} ", location.block);
    }
    if (group->address(me, {own.id + 1, 0}).ok()) wrong += "own";
    barrier(*group, 2);
    return wrong;
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", ""}));
}

TEST(Shm, EveryRankHasTheSameFewDescriptorsHoweverManyRanks) {
  const auto most = [](int ranks) {
    const auto counts = run_ranks(ranks, [ranks, job = unique_job()](Rank me) {
      const std::size_t before = open_files();
      const auto group = make_shm_group(as(me, ranks, job)).value();
      const std::size_t opened = open_files() - before;
      barrier(*group, 1);
      return me == 0 ? std::string{"0"} : std::to_string(opened);  // rank 0 has all connections
    });
    int highest = 0;
    for (const std::string& count : counts) highest = std::max(highest, std::stoi(count));
    return highest;
  };
  EXPECT_EQ(most(24), most(60));
}

// Neither rank 10 nor rank 20 looks at rank 1 from the start, and those that do compute.
TEST(Shm, TheDeathThatOneRankHasSeenIsKnownToAll) {
  constexpr int kRanks = 45;
  const auto results = run_ranks(kRanks, [job = unique_job()](Rank me) -> std::string {
    const auto group = make_shm_group(as(me, kRanks, job)).value();
    barrier(*group, 1);
    if (me == 1) raise(SIGKILL);
    const auto begin = Clock::now();
    const auto wait_for = [&](auto&& seen) {
      while (!seen() && Clock::now() < begin + 20s) std::this_thread::sleep_for(1ms);
      return seen();
    };
    if (me == 20) {
      std::this_thread::sleep_for(300ms);
      if (!group->death_of(1).empty()) return "somebody has looked";
      group->watch(1);
      return wait_for([&] { return !group->death_of(1).empty(); }) ? "" : "it is not seen";
    }
    if (me == 10)
      return wait_for([&] { return !group->death_of(1).empty(); }) ? "" : "nobody tells";
    std::this_thread::sleep_for(500ms);
    return "";
  });
  for (Rank rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(results[static_cast<std::size_t>(rank)],
              rank == 1 ? base::format("killed by signal {}", SIGKILL) : "");
}

// Rank 1 ends in the given way. Returns the death that rank 0 notices.
std::string death_after(const std::function<void(std::shared_ptr<Memory>&)>& end) {
  const auto results = run_ranks(2, [&, job = unique_job()](Rank me) -> std::string {
    std::shared_ptr<Memory> memory = join_shm(as(me, 2, job)).value().memory;
    if (me == 1) {
      std::this_thread::sleep_for(50ms);
      end(memory);
      return "";
    }
    std::string death = memory->death_of(1);
    if (!death.empty()) return "too early: " + death;
    const auto begin = Clock::now();
    while (death.empty() && Clock::now() < begin + 20s) {
      std::this_thread::sleep_for(1ms);
      death = memory->death_of(1);
    }
    if (memory->death_of(1) != death || !memory->death_of(0).empty()) return "the death changed";
    return death;
  });
  return results[0];
}

TEST(Shm, AKilledPeerIsGone) {
  const std::string death = death_after([](auto&) { raise(SIGKILL); });
  EXPECT_TRUE(death.starts_with("process ") && death.ends_with(" is gone")) << death;
}

TEST(Shm, APeerThatReleasedItsMemoryHasLeft) {
  const std::string death = death_after([](std::shared_ptr<Memory>& memory) {
    memory.reset();
    std::this_thread::sleep_for(300ms);
  });
  EXPECT_TRUE(death.starts_with("process ") && death.ends_with(" has left")) << death;
}

TEST(Shm, AKilledPeerIsGoneEvenIfItsChildLives) {
  const std::string death = death_after([](auto&) {
    if (fork() == 0) {
      std::this_thread::sleep_for(2s);
      _exit(0);
    }
    raise(SIGKILL);
  });
  EXPECT_TRUE(death.ends_with(" is gone")) << death;
}

TEST(Shm, AForkedChildDoesNotCloseItsParentsConnections) {
  const std::string death = death_after([](std::shared_ptr<Memory>& memory) {
    if (const pid_t child = fork(); child == 0) {
      memory.reset();
      _exit(0);
    } else {
      waitpid(child, nullptr, 0);
    }
    if (!memory->death_of(0).empty()) _exit(1);
    std::this_thread::sleep_for(200ms);
    memory.reset();
    std::this_thread::sleep_for(200ms);
  });
  EXPECT_TRUE(death.ends_with(" has left")) << death;
}

TEST(Shm, NothingIsLeftOpenOrMapped) {
  const auto results = run_ranks(3, [job = unique_job()](Rank me) -> std::string {
    const std::size_t files = open_files();
    for (int round = 0; round < 3; ++round) {  // the same job again: two communicators in turn
      const auto group = make_shm_group(as(me, 3, job)).value();
      const MemoryBlock own = group->memory().allocate(100000).value();
      const auto ids = exchange(*group, own.id, 1);
      for (Rank peer = 0; peer < 3; ++peer)
        (void)group->address(peer, {ids[static_cast<std::size_t>(peer)], 0}).value();
      barrier(*group, 2);
    }
    ShmOptions alone = as(me, 4, job);  // fails: there is no rank 3
    alone.deadline = Clock::now() + 100ms;
    if (join_shm(alone).ok()) return "joined without rank 3";
    if (open_files() != files) return base::format("{} files open, {} before", open_files(), files);
    return mappings() == 0 ? "" : base::format("{} mappings left", mappings());
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", "", ""}));
  for (const auto& entry : std::filesystem::directory_iterator{"/dev/shm"}) {
    EXPECT_EQ(entry.path().string().find("sluice"), std::string::npos) << entry.path();
  }
}

TEST(Shm, AllThreadsOfARankMayCallItAtOnce) {
  const auto results = run_ranks(2, [job = unique_job()](Rank me) -> std::string {
    const auto group = make_shm_group(as(me, 2, job)).value();
    const MemoryBlock own = group->memory().allocate(100000).value();
    const auto ids = exchange(*group, own.id, 1);
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          for (int i = 0; i < 200; ++i) {
            const MemoryBlock block = group->memory().allocate(3000).value();
            (void)group->address(1 - me, {ids[static_cast<std::size_t>(1 - me)], 77}).value();
            (void)group->death_of(1 - me);
            group->memory().release(block);
          }
        });
      }
    }
    barrier(*group, 2);
    return "";
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", ""}));
}

TEST(ShmJoin, TheErrorNamesTheMissingRanks) {
  const std::vector<Rank> present{0, 1, 3, 4, 5};
  const auto begin = Clock::now();
  const auto results = run_ranks(5, [&, job = unique_job()](int i) {
    return join_shm(as(present[static_cast<std::size_t>(i)], 8, job, 700ms)).status().message();
  });
  EXPECT_LT(Clock::now() - begin, 20s);
  for (const std::string& text : results)
    EXPECT_TRUE(base::has(text, "5 of 8 ranks joined, waiting for ranks 2, 6, 7")) << text;
}

TEST(ShmJoin, WaitsForALateRank) {
  const auto results = run_ranks(3, [job = unique_job()](Rank me) {
    std::this_thread::sleep_for(300ms * ((me + 1) % 3));
    return join_shm(as(me, 3, job)).status().message();
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", "", ""}));
}

TEST(ShmJoin, AWrongTokenFindsNoRank) {
  const auto results = run_ranks(3, [job = unique_job()](Rank me) {
    ShmOptions join = as(me, 3, job, 1s);
    if (me == 2) join.token = "guess";
    return join_shm(join).status().message();
  });
  EXPECT_TRUE(base::has(results[2],
                        "1 of 3 ranks joined, waiting for ranks 0, 1; ranks find each other only "
                        "with the same SLUICE_JOB and SLUICE_TOKEN"))
      << results[2];
  for (const Rank rank : {0, 1})
    EXPECT_TRUE(base::has(results[rank], "2 of 3 ranks joined, waiting for rank 2"))
        << results[rank];
}

base::Fd socket_at(const std::string& name, int (*use)(int, const sockaddr*, socklen_t)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  base::Fd fd{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (use(fd.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) fd.reset();
  return fd;
}

// Every user may bind abstract names. The names must be unknown to those without the token.
TEST(ShmJoin, NamesCannotBeTakenWithoutTheToken) {
  const std::string job = unique_job();
  std::vector<base::Fd> taken;
  for (const char* token : {"", "guess"}) {
    ShmOptions guessed = as(0, 2, job);
    guessed.token = token;
    taken.push_back(socket_at(node_name(guessed), bind));
  }
  taken.push_back(socket_at(base::format("sluice/{}/{}", getuid(), job), bind));
  for (const base::Fd& each : taken) ASSERT_TRUE(each.open());
  EXPECT_EQ(run_ranks(2, [&](Rank me) { return join_shm(as(me, 2, job, 2s)).status().message(); }),
            (std::vector<std::string>{"", ""}));
}

// The answer of rank 0 to a process that knows its name and sends a hello and this proof.
std::string answer_to_proof(
    const std::function<TokenProof(const Packet& hello, const Nonce&)>& proof) {
  const std::string job = unique_job();
  const auto results = run_ranks(2, [&](int i) -> std::string {
    if (i == 0) return join_shm(as(0, 2, job, 1s)).status().message();
    base::Fd client;
    while (!client.open()) client = socket_at(node_name(as(0, 2, job)), connect);
    const Packet hello{.kind = PacketKind::Hello, .rank = 1, .ranks = 2, .nonce = new_nonce()};
    if (!send_packet(client.number(), hello)) return "no hello";
    const auto next = [&] {
      ReceivedPacket received;
      while (received.state == ReceivedPacket::State::Nothing)
        received = receive_packet(client.number());
      return received;
    };
    const ReceivedPacket challenge = next();
    if (challenge.packet.kind != PacketKind::Challenge) return "no challenge";
    const Packet answer{.kind = PacketKind::Proof,
                        .rank = 1,
                        .ranks = 2,
                        .proof = proof(hello, challenge.packet.nonce)};
    if (!send_packet(client.number(), answer)) return "no proof";
    const ReceivedPacket verdict = next();
    return verdict.packet.kind == PacketKind::Welcome ? "welcome"
                                                      : std::string{verdict.packet.text()};
  });
  return results[1];
}

Transcript transcript(const Packet& hello, const Nonce& challenge) {
  return {"node", std::as_bytes(std::span{&hello, 1}), challenge};
}

TEST(ShmJoin, OnlyAProofOfTheTokenIsWelcome) {
  const auto by = [](std::string_view token, Side side) {
    return [=](const Packet& hello, const Nonce& challenge) {
      return prove(token, side, transcript(hello, challenge)).value();
    };
  };
  EXPECT_EQ(answer_to_proof(by("secret", Side::Client)), "welcome");
  EXPECT_EQ(answer_to_proof(by("guess", Side::Client)), kWrongToken);
  EXPECT_EQ(answer_to_proof(by("secret", Side::Server)), kWrongToken);
  EXPECT_EQ(answer_to_proof([](const Packet& hello, const Nonce&) {
              return prove("secret", Side::Client, transcript(hello, Nonce{})).value();
            }),
            kWrongToken);
}

TEST(ShmJoin, ADifferentNumberOfRanksIsRefused) {
  const auto results = run_ranks(2, [job = unique_job()](Rank me) {
    return join_shm(as(me, 2 + me, job, 1s)).status().message();
  });
  EXPECT_TRUE(base::has(results[1], "it counts 3 ranks, not 2")) << results[1];
}

TEST(ShmJoin, ASecondProcessWithTheSameRankIsRefused) {
  const auto results = run_ranks(2, [job = unique_job()](int i) {
    std::this_thread::sleep_for(200ms * i);
    return join_shm(as(0, 2, job, 1s)).status().message();
  });
  EXPECT_TRUE(base::has(results[1], "another process of this machine is rank 0 already"))
      << results[1];
}

TEST(ShmJoin, ARankThatDiesWhileItJoinsEndsTheWaitAtOnce) {
  const auto begin = Clock::now();
  const auto results = run_ranks(2, [job = unique_job()](Rank me) -> std::string {
    if (me == 1) {
      // Rank 2 is missing, so the join does not end. This process is killed when rank 0 knows it.
      std::jthread joining{[&] { (void)join_shm(as(1, 3, job)); }};
      std::this_thread::sleep_for(500ms);
      raise(SIGKILL);
    }
    return join_shm(as(me, 3, job)).status().message();
  });
  EXPECT_LT(Clock::now() - begin, 20s) << "the deadline is 30 s";
  EXPECT_TRUE(base::has(results[0], "was lost before all 3 ranks had joined")) << results[0];
}

TEST(ShmJoin, ConnectionsWithGarbageOrWithoutAHelloDelayNoRank) {
  const std::string job = unique_job();
  const auto results = run_ranks(4, [&](int i) -> std::string {
    if (i < 2) {
      std::this_thread::sleep_for(500ms * i);
      return join_shm(as(i, 2, job)).status().message();
    }
    std::this_thread::sleep_for(200ms);
    std::vector<base::Fd> clients;
    for (int connection = 0; connection < 40; ++connection) {
      clients.push_back(socket_at(node_name(as(0, 2, job)), connect));
      if (!clients.back().open()) return "rank 0 does not listen";
      if (i == 2) (void)!write(clients.back().number(), "nonsense", 8);
    }
    std::this_thread::sleep_for(500ms);
    return "";
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", "", "", ""}));
}

TEST(ShmJoin, LongJobNamesAreDistinguished) {
  const std::string job = std::string(300, 'j') + unique_job();
  const auto results = run_ranks(4, [&](int i) {
    return join_shm(as(i % 2, 2, job + std::to_string(i / 2))).status().message();
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", "", "", ""}));
}

TEST(ShmJoin, ManyRanksJoinAndLeaveAtOnce) {
  constexpr int kRanks = 24;
  const auto results = run_ranks(kRanks, [job = unique_job()](Rank me) {
    return join_shm(as(me, kRanks, job)).status().message();  // and leaves at once
  });
  EXPECT_EQ(results, std::vector<std::string>(kRanks));
}

TEST(ShmJoin, RefusesInvalidRanks) {
  EXPECT_FALSE(join_shm(as(2, 2, "j")).ok());
  EXPECT_FALSE(join_shm(as(-1, 2, "j")).ok());
  EXPECT_FALSE(join_shm(as(0, 0, "j")).ok());
  ShmOptions join = as(0, 1, "j");
  join.token = std::string(256, 't');
  EXPECT_FALSE(join_shm(join).ok());
}

}  // namespace
}  // namespace sluice::transport
