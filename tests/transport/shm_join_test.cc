// How the processes of a node find each other, and what they say when they do not.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <thread>

#include "base/format.h"
#include "tests/base/has.h"
#include "tests/transport/processes.h"
#include "transport/memory/memory.h"

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;
using testing_processes::as;
using testing_processes::run_ranks;
using testing_processes::unique_job;

TEST(ShmJoin, SaysWhichRanksAreMissing) {
  const std::vector<Rank> present{0, 1, 3, 4, 5};
  const auto begin = Clock::now();
  const auto said = run_ranks(5, [&, job = unique_job()](int i) {
    return join_shm(as(present[static_cast<std::size_t>(i)], 8, job, 700ms)).status().message();
  });
  EXPECT_LT(Clock::now() - begin, 20s);
  for (const std::string& text : said)
    EXPECT_TRUE(base::has(text, "5 of 8 ranks joined, waiting for ranks 2, 6, 7")) << text;
}

TEST(ShmJoin, ALateRankIsWaitedFor) {
  const auto said = run_ranks(3, [job = unique_job()](Rank me) {
    std::this_thread::sleep_for(300ms * ((me + 1) % 3));
    return join_shm(as(me, 3, job)).status().message();
  });
  EXPECT_EQ(said, (std::vector<std::string>{"", "", ""}));
}

TEST(ShmJoin, AWrongTokenIsRefused) {
  const auto said = run_ranks(3, [job = unique_job()](Rank me) {
    ShmOptions join = as(me, 3, job, 1s);
    if (me == 2) join.token = "guess";
    return join_shm(join).status().message();
  });
  EXPECT_TRUE(base::has(said[2], "refused this process: its token is not that of this job"))
      << said[2];
  for (const Rank rank : {0, 1}) {
    EXPECT_TRUE(base::has(said[rank], "2 of 3 ranks joined, waiting for rank 2")) << said[rank];
    EXPECT_TRUE(base::has(said[rank], "was refused: its token")) << said[rank];
  }
}

TEST(ShmJoin, RanksThatCountDifferentlyAreToldSo) {
  const auto said = run_ranks(2, [job = unique_job()](Rank me) {
    return join_shm(as(me, 2 + me, job, 1s)).status().message();
  });
  EXPECT_TRUE(base::has(said[1], "it counts 3 ranks, not 2")) << said[1];
}

TEST(ShmJoin, ARankThatIsThereTwiceIsToldSo) {
  const auto said = run_ranks(2, [job = unique_job()](int i) {
    std::this_thread::sleep_for(200ms * i);
    return join_shm(as(0, 2, job, 1s)).status().message();
  });
  EXPECT_TRUE(base::has(said[1], "another process of this machine is rank 0 already")) << said[1];
}

TEST(ShmJoin, ARankThatDiesWhileJoiningEndsTheWaitAtOnce) {
  const auto begin = Clock::now();
  const auto said = run_ranks(2, [job = unique_job()](Rank me) -> std::string {
    if (me == 1) {
      // Joins one rank too few, from a thread, and is killed when rank 0 knows it.
      std::jthread joining{[&] { (void)join_shm(as(1, 3, job)); }};
      std::this_thread::sleep_for(500ms);
      raise(SIGKILL);
    }
    return join_shm(as(me, 3, job)).status().message();
  });
  EXPECT_LT(Clock::now() - begin, 20s) << "not the deadline of 30 s";
  EXPECT_TRUE(base::has(said[0], "was lost before all 3 ranks had joined")) << said[0];
}

TEST(ShmJoin, AStrangerThatTalksNonsenseOrNothingDoesNoHarm) {
  const std::string job = unique_job();
  const auto said = run_ranks(4, [&](int i) -> std::string {
    if (i < 2) {
      std::this_thread::sleep_for(500ms * i);
      return join_shm(as(i, 2, job)).status().message();
    }
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string text = base::format("sluice/{}/{}/0", getuid(), job);
    std::copy(text.begin(), text.end(), name.sun_path + 1);
    std::this_thread::sleep_for(200ms);
    for (int call = 0; call < 40; ++call) {
      const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
      const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
      if (connect(fd, reinterpret_cast<const sockaddr*>(&name), bytes) != 0)
        return "nobody listens";
      if (i == 2) (void)!write(fd, "nonsense", 8);
    }
    std::this_thread::sleep_for(500ms);
    return "";
  });
  EXPECT_EQ(said, (std::vector<std::string>{"", "", "", ""}));
}

TEST(ShmJoin, LongJobsAreToldApart) {
  const std::string job = std::string(300, 'j') + unique_job();
  const auto said = run_ranks(4, [&](int i) {
    return join_shm(as(i % 2, 2, job + std::to_string(i / 2))).status().message();
  });
  EXPECT_EQ(said, (std::vector<std::string>{"", "", "", ""}));
}

TEST(ShmJoin, ManyRanksJoinAndLeaveAtOnce) {
  constexpr int kRanks = 24;
  const auto said = run_ranks(kRanks, [job = unique_job()](Rank me) {
    return join_shm(as(me, kRanks, job)).status().message();  // and leaves at once
  });
  EXPECT_EQ(said, std::vector<std::string>(kRanks));
}

TEST(ShmJoin, RefusesRanksThatCannotBe) {
  EXPECT_FALSE(join_shm(as(2, 2, "j")).ok());
  EXPECT_FALSE(join_shm(as(-1, 2, "j")).ok());
  EXPECT_FALSE(join_shm(as(0, 0, "j")).ok());
  ShmOptions join = as(0, 1, "j");
  join.token = std::string(256, 't');
  EXPECT_FALSE(join_shm(join).ok());
}

}  // namespace
}  // namespace sluice::transport
