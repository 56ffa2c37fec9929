#include "engine/failure/failure_detector.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace sluice::engine {
namespace {

// Four ranks of one node, of which the test says who has died and who is stopped; this is rank 3.
class FourRanks final : public transport::Memory {
 public:
  Rank rank() const override { return 3; }
  int size() const override { return 4; }
  Result<transport::MemoryBlock> allocate(std::size_t) override {
    return Status{Code::InvalidArgument, "there is none"};
  }
  void release(const transport::MemoryBlock&) override {}
  Result<std::byte*> address(Rank, transport::MemoryLocation) override {
    return Status{Code::InvalidArgument, "there is none"};
  }
  int wake_descriptor() const override { return -1; }
  void wake(Rank) override {}
  std::string death_of(Rank peer) override { return deaths[peer]; }
  std::string stall_of(Rank peer) override { return standstills[peer]; }

  std::map<Rank, std::string> deaths;
  std::map<Rank, std::string> standstills;
};

class Collects final : public RunningCollective {
 public:
  explicit Collects(std::set<Rank> needed) : needed_{std::move(needed)} {}
  Result<bool> advance() override { return false; }
  std::uint64_t moved() const override { return 0; }
  int step() const override { return 1; }
  int steps() const override { return 1; }
  Rank waits_for() const override { return needed_.empty() ? kOwn : *needed_.begin(); }
  Rank differs() const override { return kOwn; }
  bool needs(Rank peer) const override { return needed_.count(peer) > 0; }

 private:
  std::set<Rank> needed_;
};

class WatchTest : public testing::Test {
 protected:
  void enter(Rank rank, std::uint64_t collective, std::uint64_t signature = 7) {
    group_.board(rank).entered = collective;
    group_.board(rank).signature = signature;
  }
  void give_up(Rank rank, Rank because_of, std::uint32_t how = transport::kFailed) {
    group_.board(rank).blamed = because_of + 1;
    group_.board(rank).blamed_in = because_of == kOwn ? 0 : group_.board(because_of).entered.load();
    group_.board(rank).failed = how;
  }
  void leave(Rank rank) { memory_->deaths[rank] = "it has left"; }
  std::string cause_of_loss(const std::set<Rank>& needed) {
    const std::optional<Blame> blame = watch_.loss(Collects{needed}, moves_);
    return blame ? blame->how : "";
  }

  std::shared_ptr<FourRanks> memory_ = std::make_shared<FourRanks>();
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  std::vector<Line> control_{transport::ControlBlock::bytes(4) / sizeof(Line) + 1};
  transport::Group group_{memory_, control_.front().bytes.data()};
  FailureDetector watch_{group_};
  bool moves_ = false;
};

TEST_F(WatchTest, WhileAllLiveNothingIsLost) {
  watch_.look();
  EXPECT_EQ(cause_of_loss({0, 1, 2}), "");
}

TEST_F(WatchTest, TheDeadAreBlamedByWhoNeedsThem) {
  leave(1);
  watch_.look();
  EXPECT_EQ(cause_of_loss({0, 1}), "rank 1 is lost (it has left)");
  EXPECT_EQ(cause_of_loss({0, 2}), "");
}

TEST_F(WatchTest, WhoGaveUpAndLeftIsNotTheCause) {
  give_up(0, 2);
  leave(0);
  watch_.look();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 2");
}

TEST_F(WatchTest, TheDeadComeBeforeThoseWhoGaveUp) {
  give_up(0, 1);
  leave(1);
  watch_.look();
  EXPECT_EQ(cause_of_loss({0, 1}), "rank 1 is lost (it has left)");
  EXPECT_EQ(cause_of_loss({0}), "rank 1 is lost (it has left)");
}

TEST_F(WatchTest, WhoIsBlamedAndHasDiedSinceTheLookIsLost) {
  give_up(0, 1);
  watch_.look();
  leave(1);
  EXPECT_EQ(cause_of_loss({0}), "rank 1 is lost (it has left)");
}

// Two that found out that they do not call the same: one is heard, and the other gives up and
// leaves between the look and the question.
TEST_F(WatchTest, WhoIsBlamedAndGaveUpAndLeftSinceTheLookIsNotLost) {
  give_up(0, 1, transport::kMismatched);
  watch_.look();
  give_up(1, 0, transport::kMismatched);
  leave(1);
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
}

TEST_F(WatchTest, WhoIsBlamedMayBeThisRank) {
  give_up(0, 3);
  watch_.look();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of this rank");
}

TEST_F(WatchTest, WhoBlamesNobodyIsNamedItself) {
  give_up(0, kOwn);
  watch_.look();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up");
}

// Rank 0 is at #6 where it met rank 1 with another call; this rank still needs it in #5.
TEST_F(WatchTest, WhoWentOnWithoutThisRankIsTheOddOne) {
  enter(3, 5);
  enter(1, 5);
  enter(0, 6, 8);
  give_up(0, 1, transport::kMismatched);
  watch_.look();
  const std::optional<Blame> blame = watch_.loss(Collects{{0}}, true);
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->culprit, 0);
  EXPECT_TRUE(blame->mismatched);
}

TEST_F(WatchTest, WhoWentOnWithMostOthersIsNotTheOddOne) {
  enter(3, 5);
  for (const Rank rank : {0, 2}) enter(rank, 6, 8);
  enter(1, 6, 9);
  give_up(0, 1, transport::kMismatched);
  watch_.look();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
}

// What two sent before they met in #6 is on its way: this rank will see for itself who is odd.
TEST_F(WatchTest, WhileDataComesTwoThatMetAheadAreNotBlamed) {
  enter(3, 5);
  enter(0, 6, 8);
  enter(1, 6, 9);
  give_up(0, 1, transport::kMismatched);
  give_up(1, 0, transport::kMismatched);
  watch_.look();
  moves_ = true;
  EXPECT_EQ(cause_of_loss({0, 1}), "");
  moves_ = false;
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
  moves_ = true;
  enter(3, 6, 8);
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
}

TEST_F(WatchTest, WhileDataComesWhoDiedIsStillLost) {
  enter(3, 5);
  leave(1);
  watch_.look();
  moves_ = true;
  EXPECT_EQ(cause_of_loss({1}), "rank 1 is lost (it has left)");
}

TEST_F(WatchTest, WhoHasDoneItsPartAndLeftDoesNotHoldUpTheRest) {
  leave(0);
  memory_->standstills[2] = "process 17 is stopped";
  watch_.look();
  EXPECT_EQ(watch_.standstill(Collects{{2}}).how, "rank 2 is stopped (process 17 is stopped)");
  EXPECT_EQ(watch_.standstill(Collects{{0, 2}}).how, "rank 0 is lost (it has left)");
}

TEST_F(WatchTest, AStoppedProcessHoldsUpTheRest) {
  enter(0, 1);
  memory_->standstills[2] = "process 17 is stopped";
  watch_.look();
  EXPECT_EQ(watch_.standstill(Collects{{0}}).how, "rank 2 is stopped (process 17 is stopped)");
}

TEST_F(WatchTest, ElseItIsWhoIsFurthestBehindAndWaitsForNobody) {
  enter(0, 4);
  group_.board(0).waits_for = 1 + 1;
  enter(1, 5);
  enter(2, 6);
  watch_.look();
  const Blame blame = watch_.standstill(Collects{{0}});
  EXPECT_EQ(blame.culprit, 1);
  EXPECT_EQ(blame.how, "rank 1 last reported collective #5");
}

}  // namespace
}  // namespace sluice::engine
