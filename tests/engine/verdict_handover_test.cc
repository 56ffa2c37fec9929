#include "engine/verdict_handover.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "engine/proofs.h"
#include "engine/select/choices.h"
#include "tests/engine/forged_network.h"
#include "tests/engine/ranks.h"
#include "transport/memory/memory.h"

namespace sluice::engine {
namespace {

// The ranks of a group in one thread, each at the first use of an algorithm.
struct HandoverRanks {
  HandoverRanks(int ranks, const Algorithm& algorithm)
      : choice{.algorithm = &algorithm, .shape = {.ranks = ranks}} {
    for (auto& group : transport::make_inproc_groups(ranks)) {
      endpoints.push_back(std::make_unique<Endpoint>(std::move(group)));
      handovers.push_back(std::make_unique<VerdictHandover>(*endpoints.back()));
    }
    request.algorithm = &algorithm;
    request.number = 1;
    request.choice = &choice;
    request.first_use = true;
    sign(request);
  }
  void begin(std::size_t rank) {
    endpoints[rank]->group().own_board().entered.store(request.number);
    handovers[rank]->begin(request);
  }
  // The result of a rank that is done or has failed.
  std::optional<Status> advance(std::size_t rank) {
    const Result<bool> result = handovers[rank]->advance();
    if (!result.ok()) return result.status();
    return result.value() ? std::optional{Status{}} : std::nullopt;
  }

  // The result of rank 0, once it has proven.
  std::optional<Status> prove() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    std::optional<Status> result;
    while (!result && std::chrono::steady_clock::now() < until) {
      result = advance(0);
      std::this_thread::yield();
    }
    return result;
  }

  Choice choice;
  Request request;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<std::unique_ptr<VerdictHandover>> handovers;
};

// The proofs so far, also those that an earlier run of this program has kept.
int verdicts() {
  const ProofCounts counts = Proofs::of_process().counts();
  return counts.made + counts.from_cache;
}

Algorithm ring_named(std::string_view name) {
  Algorithm algorithm = *find_algorithm("ring").value();
  algorithm.name = name;
  return algorithm;
}

TEST(VerdictHandover, ReachesAllRanksInAnyOrderOfTheirSteps) {
  const Algorithm algorithm = ring_named("ring, in any order");
  std::mt19937 random{1};
  for (const int ranks : {1, 2, 3, 4, 7, 8, 13, 64}) {
    const int before = verdicts();
    HandoverRanks all{ranks, algorithm};
    std::vector<std::size_t> waiting;
    for (std::size_t rank = 0; rank < all.handovers.size(); ++rank) waiting.push_back(rank);
    std::shuffle(waiting.begin(), waiting.end(), random);
    for (const std::size_t rank : waiting) all.begin(rank);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!waiting.empty()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "no end with " << ranks << " ranks";
      const auto at = waiting.begin() + static_cast<std::ptrdiff_t>(random() % waiting.size());
      const std::optional<Status> result = all.advance(*at);
      if (!result) continue;
      EXPECT_TRUE(result->ok()) << result->message();
      waiting.erase(at);
    }
    EXPECT_EQ(verdicts(), before + 1) << "by rank 0 alone";
  }
}

TEST(VerdictHandover, ARankThatRunsAheadWaits) {
  const Algorithm algorithm = ring_named("ring, ahead");
  HandoverRanks all{7, algorithm};
  for (std::size_t rank = 1; rank < 7; ++rank) all.begin(rank);
  for (int i = 0; i < 3; ++i) {
    for (std::size_t rank = 1; rank < 7; ++rank) EXPECT_FALSE(all.advance(rank)) << rank;
  }
  const std::vector<Rank> parents{kOwn, 0, 0, 2, 0, 4, 4};
  for (std::size_t rank = 1; rank < 7; ++rank) {
    EXPECT_EQ(all.handovers[rank]->waits_for(), parents[rank]) << rank;
    EXPECT_TRUE(all.handovers[rank]->needs(parents[rank])) << rank;
  }
  all.begin(0);
  ASSERT_TRUE(all.prove());
  for (std::size_t rank = 0; rank < 7; ++rank) {  // parents come before their children
    ASSERT_TRUE(all.advance(rank)) << rank;
    EXPECT_EQ(all.handovers[rank]->waits_for(), kOwn);
  }
}

TEST(VerdictHandover, WithoutAProofAllRanksFail) {
  Algorithm broken = ring_named("ring without its first rank");
  broken.program = [](const Shape& shape, Rank rank) {
    Program program = find_algorithm("ring").value()->program(shape, rank);
    return rank == 0 ? Program{program.chunking()} : program;
  };
  HandoverRanks all{7, broken};
  for (std::size_t rank = 0; rank < 7; ++rank) all.begin(rank);
  for (std::size_t rank = 0; rank < 7; ++rank) {
    const std::optional<Status> result = rank == 0 ? all.prove() : all.advance(rank);
    ASSERT_TRUE(result) << rank;
    EXPECT_EQ(result->code(), Code::NotProven);
    EXPECT_NE(result->message().find("its first rank is not proven and will not run: rank"),
              std::string::npos)
        << result->message();
    all.endpoints[rank]->withdraw();  // as a communicator does that fails
  }
}

TEST(VerdictHandover, AMessageOfAnotherCollectiveIsAMismatch) {
  const Algorithm algorithm = ring_named("ring, mismatched");
  HandoverRanks all{3, algorithm};
  all.begin(0);
  ASSERT_TRUE(all.prove());
  all.request.count = 5;
  sign(all.request);
  all.begin(1);
  const std::optional<Status> result = all.advance(1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->code(), Code::Mismatch);
  EXPECT_EQ(all.handovers[1]->mismatched_peer(), 0);
}

// Keeps the proofs of this process busy until it is released.
class SlowProof {
 public:
  SlowProof() {
    began_.get_future().wait();  // after the thread has begun to prove
  }
  void release() { released_.set_value(); }

 private:
  inline static std::promise<void>* began = nullptr;
  inline static std::shared_future<void> until;

  std::promise<void> began_;
  std::promise<void> released_;
  std::jthread thread_{[this] {
    began = &began_;
    until = released_.get_future().share();
    // Without a proof nothing is kept in the cache folder, so the next run of this test is slow
    // too.
    static int version = 0;
    Algorithm slow = ring_named("no ring");
    slow.version = ++version;
    slow.program = [](const Shape& shape, Rank rank) {
      if (rank > 0) return find_algorithm("ring").value()->program(shape, rank);
      began->set_value();
      until.wait();
      return Program{Chunking{shape.ranks}};
    };
    (void)Proofs::of_process().verdict_on(slow, {.ranks = 2});
  }};
};

TEST(VerdictHandover, ARankKnowsThatRankZeroIsProving) {
  const Algorithm algorithm = ring_named("ring, watched");
  HandoverRanks all{3, algorithm};
  all.begin(2);
  EXPECT_FALSE(all.handovers[2]->is_being_proven()) << "rank 0 has not called it";
  SlowProof other;
  all.begin(0);
  for (const std::size_t rank : {0, 2}) {
    EXPECT_FALSE(all.advance(rank));
    EXPECT_TRUE(all.handovers[rank]->is_being_proven());
  }
  other.release();
  while (all.handovers[2]->is_being_proven()) std::this_thread::yield();
  // Rank 0 has not called advance(). It may be late for another reason now.
  EXPECT_FALSE(all.advance(2));
  EXPECT_TRUE(all.prove());
  EXPECT_FALSE(all.handovers[0]->is_being_proven());
  EXPECT_TRUE(all.advance(2));
}

TEST(VerdictHandover, AProofThatTakesLongerThanTheDeadlineIsNoStall) {
  run_ranks(3, [](Communicator& comm) {
    comm.barrier();
    comm.set_deadline(std::chrono::seconds{1});
    std::optional<SlowProof> other;
    std::jthread release;
    if (comm.rank() == 0) {
      other.emplace();
      release = std::jthread{[&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{2500});
        other->release();
      }};
    }
    std::vector<float> data(1000, static_cast<float>(comm.rank()));
    comm.all_reduce(data, {.algorithm = "hierarchical:direct"}).wait();
    EXPECT_EQ(data[0], 3.0F);
  });
}

TEST(VerdictHandover, ARankZeroThatProvesAndIsNotHeardFromIsAStall) {
  using namespace std::chrono_literals;
  constexpr std::size_t kCount = 100;
  Request request{.number = 1, .algorithm = find_algorithm("ring").value(), .count = kCount};
  sign(request);
  const auto failure = [&](bool is_heard_once) {
    auto network = std::make_unique<ForgedNetwork>();
    network->status = {.entered = 1,
                       .kind = packed_kind(request),
                       .count = kCount,
                       .signature = request.signature,
                       .step = transport::kProvingStep};
    network->status_comes_once = is_heard_once;
    // The peer, which is heard from for ever, is lost at last.
    const transport::Clock::time_point death = transport::Clock::now() + 3s;
    network->death_comes = death;
    return failure_of_all_reduce(1, kCount, std::move(network), 1s);
  };
  EXPECT_EQ(failure(true).code(), Code::DeadlineExceeded);
  EXPECT_EQ(failure(false).code(), Code::PeerLost) << "no deadline while it proves";
}

TEST(VerdictHandover, HappensOnceForEachScheduleOfACommunicator) {
  const int before = verdicts();
  run_ranks(5, [](Communicator& comm) {
    // One rank looks first. That must not change what the others wait for.
    if (comm.rank() == 3)
      (void)comm.algorithm_for(Collective::AllReduce, 77 * sizeof(double), {.algorithm = "ring"});
    std::vector<double> data(77);
    for (int i = 0; i < 20; ++i) {
      for (const char* algorithm : {"ring", "halving_doubling", "ring", "double_tree"}) {
        data.assign(77, comm.rank() + 1);
        comm.all_reduce(data, {.op = ReduceOp::Mean, .algorithm = algorithm}).wait();
        EXPECT_EQ(data[76], 3.0);
      }
    }
    Communicator half = comm.split(comm.rank() % 2, 0);
    data.assign(77, half.rank());
    half.all_reduce(data, {.algorithm = "ring"}).wait();
    EXPECT_EQ(data[0], half.size() == 3 ? 3.0 : 1.0);
  });
  EXPECT_LE(verdicts(), before + 8) << "the algorithms above, and those of split() and barriers";
}

}  // namespace
}  // namespace sluice::engine
