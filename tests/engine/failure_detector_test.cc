#include "engine/failure/failure_detector.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace sluice::engine {
namespace {

// The memory of four ranks on one node, at rank 3. A test sets which ranks are dead or stopped.
class FourRanks final : public transport::Memory {
 public:
  Rank rank() const override { return 3; }
  int size() const override { return 4; }
  Result<transport::MemoryBlock> allocate(std::size_t) override {
    return Status{Code::InvalidArgument, "this memory holds no blocks"};
  }
  void release(const transport::MemoryBlock&) override {}
  Result<std::byte*> address(Rank, transport::MemoryLocation) override {
    return Status{Code::InvalidArgument, "this memory holds no blocks"};
  }
  int wake_descriptor() const override { return -1; }
  void wake(Rank) override {}
  std::string death_of(Rank peer) override { return deaths[peer]; }
  std::string stall_of(Rank peer) override { return standstills[peer]; }

  std::map<Rank, std::string> deaths;
  std::map<Rank, std::string> standstills;
};

// A collective that waits for some peers and never moves.
class PendingCollective final : public RunningCollective {
 public:
  explicit PendingCollective(std::set<Rank> needed) : needed_{std::move(needed)} {}
  void begin(const Request& /*request*/) override {}
  Result<bool> advance() override { return false; }
  std::uint64_t moved() const override { return 0; }
  int step() const override { return 1; }
  int steps() const override { return 1; }
  Rank waits_for() const override { return needed_.empty() ? kOwn : *needed_.begin(); }
  Rank mismatched_peer() const override { return kOwn; }
  bool needs(Rank peer) const override { return needed_.count(peer) > 0; }

 private:
  std::set<Rank> needed_;
};

class FailureDetectorTest : public testing::Test {
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
    const std::optional<Blame> blame = detector_.cause_of_loss(PendingCollective{needed}, moves_);
    return blame ? blame->how : "";
  }

  std::shared_ptr<FourRanks> memory_ = std::make_shared<FourRanks>();
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  std::vector<Line> control_{transport::ControlBlock::bytes(4) / sizeof(Line) + 1};
  transport::Group group_{memory_, control_.front().bytes.data()};
  FailureDetector detector_{group_};
  bool moves_ = false;
};

TEST_F(FailureDetectorTest, NothingIsLostWhileAllRanksLive) {
  detector_.update();
  EXPECT_EQ(cause_of_loss({0, 1, 2}), "");
}

TEST_F(FailureDetectorTest, RanksThatNeedADeadRankBlameIt) {
  leave(1);
  detector_.update();
  EXPECT_EQ(cause_of_loss({0, 1}), "rank 1 is lost (it has left)");
  EXPECT_EQ(cause_of_loss({0, 2}), "");
}

TEST_F(FailureDetectorTest, ARankThatGaveUpAndLeftIsNotTheCause) {
  give_up(0, 2);
  leave(0);
  detector_.update();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 2");
}

TEST_F(FailureDetectorTest, ADeadRankIsBlamedBeforeOneThatGaveUp) {
  give_up(0, 1);
  leave(1);
  detector_.update();
  EXPECT_EQ(cause_of_loss({0, 1}), "rank 1 is lost (it has left)");
  EXPECT_EQ(cause_of_loss({0}), "rank 1 is lost (it has left)");
}

TEST_F(FailureDetectorTest, ABlamedRankThatDiedAfterTheUpdateIsLost) {
  give_up(0, 1);
  detector_.update();
  leave(1);
  EXPECT_EQ(cause_of_loss({0}), "rank 1 is lost (it has left)");
}

// Ranks 0 and 1 found a mismatch. Rank 0's status is here; rank 1 gives up and leaves after the
// update.
TEST_F(FailureDetectorTest, ABlamedRankThatGaveUpAndLeftAfterTheUpdateIsNotLost) {
  give_up(0, 1, transport::kMismatched);
  detector_.update();
  give_up(1, 0, transport::kMismatched);
  leave(1);
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
}

// This rank has not seen the loss itself.
TEST_F(FailureDetectorTest, ARankThatAnotherRankHasLostIsLost) {
  const auto is_lost = [&] {
    detector_.update();
    return detector_.cause_of_loss(PendingCollective{{0}}, moves_)->lost;
  };
  give_up(0, 1);
  EXPECT_FALSE(is_lost());
  give_up(0, 1, transport::kLost);
  EXPECT_TRUE(is_lost());
}

TEST_F(FailureDetectorTest, ThisRankMayBeBlamed) {
  give_up(0, 3);
  detector_.update();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of this rank");
}

TEST_F(FailureDetectorTest, ARankThatGaveUpAndBlamesNoOtherIsBlamedItself) {
  give_up(0, kOwn);
  detector_.update();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up");
}

// Rank 0 is in #6, where it found that rank 1 makes another call; this rank still needs it in #5.
TEST_F(FailureDetectorTest, ARankThatRanAheadOfThisRankIsBlamed) {
  enter(3, 5);
  enter(1, 5);
  enter(0, 6, 8);
  give_up(0, 1, transport::kMismatched);
  detector_.update();
  const std::optional<Blame> blame = detector_.cause_of_loss(PendingCollective{{0}}, true);
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->culprit, 0);
  EXPECT_TRUE(blame->mismatched);
}

TEST_F(FailureDetectorTest, ARankThatRanAheadWithTheMajorityIsNotBlamed) {
  enter(3, 5);
  for (const Rank rank : {0, 2}) enter(rank, 6, 8);
  enter(1, 6, 9);
  give_up(0, 1, transport::kMismatched);
  detector_.update();
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
}

// Data that the two ranks sent before #6 is in flight. This rank will find the culprit by itself.
TEST_F(FailureDetectorTest, TwoRanksThatDifferAheadAreNotBlamedWhileDataArrives) {
  enter(3, 5);
  enter(0, 6, 8);
  enter(1, 6, 9);
  give_up(0, 1, transport::kMismatched);
  give_up(1, 0, transport::kMismatched);
  detector_.update();
  moves_ = true;
  EXPECT_EQ(cause_of_loss({0, 1}), "");
  moves_ = false;
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
  moves_ = true;
  enter(3, 6, 8);
  EXPECT_EQ(cause_of_loss({0}), "rank 0 gave up because of rank 1");
}

TEST_F(FailureDetectorTest, ADeadRankIsBlamedEvenWhileDataArrives) {
  enter(3, 5);
  leave(1);
  detector_.update();
  moves_ = true;
  EXPECT_EQ(cause_of_loss({1}), "rank 1 is lost (it has left)");
}

TEST_F(FailureDetectorTest, ARankThatFinishedAndLeftIsNotBlamedForAStall) {
  leave(0);
  memory_->standstills[2] = "process 17 is stopped";
  detector_.update();
  EXPECT_EQ(detector_.cause_of_stall(PendingCollective{{2}}).how,
            "rank 2 is stopped (process 17 is stopped)");
  EXPECT_EQ(detector_.cause_of_stall(PendingCollective{{0, 2}}).how,
            "rank 0 is lost (it has left)");
}

TEST_F(FailureDetectorTest, AStoppedProcessIsBlamedForAStall) {
  enter(0, 1);
  memory_->standstills[2] = "process 17 is stopped";
  detector_.update();
  EXPECT_EQ(detector_.cause_of_stall(PendingCollective{{0}}).how,
            "rank 2 is stopped (process 17 is stopped)");
}

TEST_F(FailureDetectorTest, WithoutAnyFailureTheRankFurthestBehindThatWaitsForNoneIsBlamed) {
  enter(0, 4);
  group_.board(0).waits_for = 1 + 1;
  enter(1, 5);
  enter(2, 6);
  detector_.update();
  const Blame blame = detector_.cause_of_stall(PendingCollective{{0}});
  EXPECT_EQ(blame.culprit, 1);
  EXPECT_EQ(blame.how, "rank 1 last reported collective #5");
}

}  // namespace
}  // namespace sluice::engine
