// Proofs are made once: by a process, by the processes that share its cache folder, and by rank 0
// of a communicator.
#include "engine/proofs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/build_id.h"
#include "base/file.h"
#include "sluice/log.h"

namespace sluice::engine {
namespace {

class ProofsTest : public testing::Test {
 protected:
  ProofsTest() {
    set_log([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::Warning) warnings_.emplace_back(message);
    });
  }
  ~ProofsTest() override {
    set_log({});
    base::remove_folder(folder_);
  }

  // A process of that build, as far as proofs are concerned.
  Proofs process(const std::string& build = "1f2e") { return Proofs{{file_, build}}; }
  std::string text() const {
    std::ifstream file{file_};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  void write(const std::string& text) { std::ofstream{file_} << text; }

  static Shape shape(int ranks) { return {.ranks = ranks}; }
  const Algorithm& ring_ = *find_algorithm("ring").value();
  const Algorithm& direct_ = *find_algorithm("direct").value();
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() /
                                  ("sluice-proofs-" + std::to_string(getpid()) + "-" +
                                   testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::path file_ = folder_ / "cache" / "proofs.txt";
  std::vector<std::string> warnings_;
};

TEST_F(ProofsTest, AProcessProvesAShapeOnce) {
  Proofs proofs{{{}, "1f2e"}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(proofs.verdict_on(ring_, shape(7)).ok());
    EXPECT_TRUE(proofs.verdict_on(ring_, shape(13)).ok());
    EXPECT_TRUE(proofs.verdict_on(direct_, shape(7)).ok());
  }
  EXPECT_EQ(proofs.counts(), (ProofCounts{.made = 3, .from_cache = 0}));
}

TEST_F(ProofsTest, ASecondStartProvesNothing) {
  {
    Proofs first = process();
    EXPECT_TRUE(first.verdict_on(ring_, shape(3)).ok());
    EXPECT_TRUE(first.verdict_on(direct_, shape(3)).ok());
    EXPECT_EQ(first.counts(), (ProofCounts{.made = 2, .from_cache = 0}));
  }
  Proofs second = process();
  EXPECT_TRUE(second.verdict_on(ring_, shape(3)).ok());
  EXPECT_TRUE(second.verdict_on(direct_, shape(3)).ok());
  EXPECT_EQ(second.counts(), (ProofCounts{.made = 0, .from_cache = 2}));
  EXPECT_TRUE(second.verdict_on(direct_, shape(4)).ok());
  EXPECT_EQ(second.counts().made, 1) << "another shape";
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ProofsTest, AnyDifferenceOfTheShapeIsAnotherProof) {
  const Algorithm& tree = *find_algorithm("double_tree").value();
  const Algorithm& nodes = *find_algorithm("hierarchical").value();
  const auto prove_all = [&](Proofs& proofs) {
    for (const Rank root : {0, 1, 12}) {
      for (const int segments : {1, 2}) {
        for (const Collective collective : {Collective::Broadcast, Collective::Reduce})
          EXPECT_TRUE(proofs.verdict_on(tree, {collective, 13, {}, root, segments}).ok());
      }
    }
    for (const std::vector<int>& grid : {std::vector{1, 6}, std::vector{6, 1}, std::vector{3, 4}})
      EXPECT_TRUE(proofs.verdict_on(nodes, {Collective::AllReduce, 7, grid, 0, 1}).ok());
    Algorithm next = nodes;
    ++next.version;
    EXPECT_TRUE(proofs.verdict_on(next, {Collective::AllReduce, 7, {3, 4}, 0, 1}).ok());
  };
  Proofs first = process();
  prove_all(first);
  EXPECT_EQ(first.counts(), (ProofCounts{.made = 16, .from_cache = 0}));
  Proofs second = process();
  prove_all(second);
  EXPECT_EQ(second.counts(), (ProofCounts{.made = 0, .from_cache = 16}));
}

TEST_F(ProofsTest, AScheduleThatIsNotProvenIsNotKept) {
  Algorithm broken = ring_;
  broken.name = "ring without its first send";
  broken.program = [](const Shape& shape, Rank rank) {
    Program program = find_algorithm("ring").value()->program(shape, rank);
    return rank == 0 ? Program{program.chunking()} : program;
  };
  for (int start = 0; start < 2; ++start) {
    Proofs proofs = process();
    for (int i = 0; i < 2; ++i) {
      const Status verdict = proofs.verdict_on(broken, shape(3)).status();
      EXPECT_EQ(verdict.code(), Code::NotProven);
      EXPECT_NE(verdict.message().find("not proven and will not run: rank "), std::string::npos)
          << verdict.message();
    }
    EXPECT_EQ(proofs.counts(), (ProofCounts{.made = 1, .from_cache = 0}));
  }
}

TEST_F(ProofsTest, ADamagedFileIsIgnoredWithAWarningAndReplaced) {
  Proofs first = process();
  EXPECT_TRUE(first.verdict_on(ring_, shape(3)).ok());
  const std::string whole = text();
  std::vector<std::string> damaged{"", "\n", "hash ", "hash 0\n", std::string(1000, '\0')};
  for (std::size_t length = 1; length < whole.size(); length += 7)
    damaged.push_back(whole.substr(0, length));
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  damaged.push_back(whole + whole);
  damaged.push_back(whole + "ring");
  for (const std::string& bytes : damaged) {
    warnings_.clear();
    write(bytes);
    Proofs proofs = process();
    EXPECT_TRUE(proofs.verdict_on(ring_, shape(3)).ok());
    EXPECT_TRUE(proofs.verdict_on(direct_, shape(3)).ok());
    EXPECT_EQ(proofs.counts(), (ProofCounts{.made = 2, .from_cache = 0})) << bytes;
    ASSERT_EQ(warnings_.size(), 1U) << bytes;
    EXPECT_NE(warnings_[0].find(file_.string()), std::string::npos);
    Proofs next = process();
    EXPECT_TRUE(next.verdict_on(ring_, shape(3)).ok());
    EXPECT_EQ(next.counts(), (ProofCounts{.made = 0, .from_cache = 1}));
  }
}

TEST_F(ProofsTest, AFileOfAnotherBuildIsIgnoredWithAWarning) {
  Proofs other = process("abcd");
  EXPECT_TRUE(other.verdict_on(ring_, shape(3)).ok());
  Proofs own = process();
  EXPECT_TRUE(own.verdict_on(ring_, shape(3)).ok());
  EXPECT_EQ(own.counts(), (ProofCounts{.made = 1, .from_cache = 0}));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("of another build"), std::string::npos) << warnings_[0];
}

TEST_F(ProofsTest, AFolderThatCannotBeWrittenIsNoError) {
  std::filesystem::create_directories(folder_);
  std::ofstream{folder_ / "cache"} << "a file, so it cannot be a folder";
  Proofs proofs = process();
  EXPECT_TRUE(proofs.verdict_on(ring_, shape(3)).ok());
  EXPECT_EQ(proofs.counts().made, 1);
}

TEST_F(ProofsTest, ThreadsAndProcessesThatStartTogetherLeaveAWholeFile) {
  constexpr int kThreads = 4;
  constexpr int kShapes = 12;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        Proofs proofs = process();
        for (int ranks = 1; ranks <= kShapes; ++ranks)
          EXPECT_TRUE(proofs.verdict_on(ring_, shape(ranks)).ok());
      });
    }
  }
  warnings_.clear();
  Proofs next = process();
  for (int ranks = 1; ranks <= kShapes; ++ranks)
    EXPECT_TRUE(next.verdict_on(ring_, shape(ranks)).ok());
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ProofsTest, TheFileIsInTheUsersCacheFolderAndNamesTheBuild) {
  using Values = std::map<std::string, std::string, std::less<>>;
  const auto path = [](Values values) {
    return proof_cache_path(bootstrap::Environment{std::move(values)}, "1f2e").string();
  };
  EXPECT_EQ(path({{"SLUICE_CACHE", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}),
            "/a/proofs-1f2e.txt");
  EXPECT_EQ(path({{"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}), "/b/sluice/proofs-1f2e.txt");
  EXPECT_EQ(path({{"HOME", "/c"}}), "/c/.cache/sluice/proofs-1f2e.txt");
  EXPECT_EQ(path({}), "");
  EXPECT_EQ(proof_cache_path(bootstrap::Environment{Values{{"HOME", "/c"}}}, ""), "");
}

TEST(BuildId, IsThatOfThisProgram) {
  // The linker of every supported toolchain writes one. Two calls agree.
  const std::string id = base::build_id();
  EXPECT_GE(id.size(), 16U);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(base::build_id(), id);
}

}  // namespace
}  // namespace sluice::engine
