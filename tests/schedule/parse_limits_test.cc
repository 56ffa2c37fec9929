// However large or senseless the input, reading it ends soon and stays small.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <functional>
#include <istream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "schedule/text_form.h"
#include "sluice/schedule.h"

namespace sluice::schedule {
namespace {

// `head`, then what `next` makes, again and again.
class Endless : public std::streambuf {
 public:
  Endless(std::string head, std::function<void(std::string&)> next)
      : block_{std::move(head)}, next_{std::move(next)} {
    show();
  }

  std::int64_t made() const { return made_; }

 protected:
  int_type underflow() override {
    block_.clear();
    next_(block_);
    show();
    return traits_type::to_int_type(block_.front());
  }

 private:
  void show() {
    made_ += std::ssize(block_);
    setg(block_.data(), block_.data(), block_.data() + block_.size());
  }

  std::string block_;
  std::function<void(std::string&)> next_;
  std::int64_t made_ = 0;
};

std::string header(int ranks, int chunks, const std::string& more = "") {
  return "sluice-schedule 1\nalgorithm a\ncollective all_reduce\nranks " + std::to_string(ranks) +
         "\nchunks " + std::to_string(chunks) + "\n" + more;
}

void random_block(std::string& block) {
  static std::uint64_t state = 1;
  for (int i = 0; i < 8192; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    block.push_back(static_cast<char>(state >> 56));
  }
}

auto repeated(const std::string& line) {
  return [line](std::string& block) {
    for (int i = 0; i < 1000; ++i) block += line;
  };
}

struct Reading {
  std::string refusal;
  std::int64_t bytes;
};

Reading read(std::string head, std::function<void(std::string&)> next) {
  Endless endless{std::move(head), std::move(next)};
  std::istream in{&endless};
  const Result<Schedule> result = parse_schedule(in);
  return {result.status().message(), endless.made()};
}

TEST(ParseLimits, EndAGibibyteOfGarbageAtItsFirstLine) {
  const Reading reading = read("", random_block);
  EXPECT_TRUE(reading.refusal.starts_with("line 1, column 1: expected \"sluice-schedule\", found"));
  EXPECT_LT(reading.bytes, 1 << 20);
  EXPECT_LT(reading.refusal.size(), 300u);
}

TEST(ParseLimits, EndGarbageBehindAHeader) {
  const Reading reading = read(header(2, 2), random_block);
  EXPECT_TRUE(reading.refusal.starts_with("line 6, column ")) << reading.refusal;
  EXPECT_LT(reading.bytes, 1 << 20);
}

TEST(ParseLimits, EndALineThatNeverEnds) {
  for (const std::string& piece : {std::string("x"), std::string(1, '\0'), std::string("# ")}) {
    const Reading reading = read(header(2, 2), repeated(piece));
    EXPECT_EQ(reading.refusal, "line 6, column 1048577: the line is longer than 1048576 bytes");
    EXPECT_LT(reading.bytes, 2 << 20);
  }
}

TEST(ParseLimits, AcceptALineOfTheFullLength) {
  const auto with_comment = [](std::int64_t bytes) {
    std::istringstream in{header(1, 1) + "#" +
                          std::string(static_cast<std::size_t>(bytes - 1), 'x') + "\n"};
    return parse_schedule(in).status().message();
  };
  EXPECT_EQ(with_comment(kMaxLineBytes), "");
  EXPECT_EQ(with_comment(kMaxLineBytes + 1),
            "line 6, column 1048577: the line is longer than 1048576 bytes");
}

TEST(ParseLimits, EndEmptyLinesWithoutEnd) {
  EXPECT_EQ(read(header(2, 2), repeated("\n")).refusal,
            "line 16777217, column 1: the file has more than 16777216 lines");
}

TEST(ParseLimits, EndCommentsWithoutEnd) {
  const Reading reading = read(header(2, 2), repeated("#" + std::string(9998, '.') + "\n"));
  EXPECT_EQ(reading.refusal.substr(reading.refusal.find(": ")),
            ": the file is longer than 1073741824 bytes");
  EXPECT_LT(reading.bytes, kMaxTextBytes + (16 << 20));
}

TEST(ParseLimits, EndOperationsWithoutEnd) {
  EXPECT_EQ(read(header(2, 2), repeated("rank 1 step 1 send buffer[0] to 0\n")).refusal,
            "line 4194310, column 13: there may be at most 4194304 operations");
}

TEST(ParseLimits, EndSourcesWithoutEnd) {
  const std::string begin = "rank 0 step 1 reduce buffer[0] from own";
  std::string line = begin;
  for (int i = 0; i < 99'999; ++i) line += "+0";
  // 83 lines of 100,000 sources, then the one beyond the last allowed.
  const std::int64_t column = std::ssize(begin) + 2 * (kMaxSources - 8'300'000);
  EXPECT_EQ(read(header(2, 2), repeated(line + "\n")).refusal,
            "line 89, column " + std::to_string(column) +
                ": the sources of all reduces may add up to at most 8388608");
}

TEST(ParseLimits, EndStepsWithoutEnd) {
  std::string lines;
  for (int rank = 0; rank < 65; ++rank) {
    lines += "rank " + std::to_string(rank) + " steps 65536\n";
  }
  std::istringstream in{header(65, 2) + lines};
  EXPECT_EQ(parse_schedule(in).status().message(),
            "line 70, column 15: the steps of all ranks may add up to at most 4194304");
}

TEST(ParseLimits, KeepWeightsOfTheLargestLayoutSmall) {
  std::string more = "weights";
  for (int chunk = 0; chunk < 512; ++chunk) more += " " + std::to_string(1 + chunk);
  std::istringstream in{header(32768, 512, more + "\n")};
  EXPECT_TRUE(parse_schedule(in).ok());
}

// Last, when all of the above have left their mark on the high-water line.
TEST(ParseLimits, NeverTakeAGibibyteOfMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#else
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(std::int64_t{usage.ru_maxrss} * 1024, kGiB);
#endif
}

TEST(ParseLimits, AreTheDocumentedOnes) {
  std::ifstream in{SLUICE_SOURCE_DIR "/docs/schedule-format.md"};
  std::stringstream page;
  page << in.rdbuf();
  const std::pair<std::string, std::int64_t> rows[] = {
      {"bytes", kMaxTextBytes},
      {"lines", kMaxLines},
      {"bytes a line", kMaxLineBytes},
      {"bytes a name", kMaxNameBytes},
      {"ranks", kMaxRanks},
      {"chunks", kMaxChunks},
      {"ranks times chunks", kMaxRanksTimesChunks},
      {"segments", kMaxSegments},
      {"scratch buffers", kMaxScratch},
      {"steps of a rank", kMaxSteps},
      {"steps of all ranks", kMaxAllSteps},
      {"operations", kMaxOperations},
      {"sources of all reduces", kMaxSources},
      {"sum of weights", kMaxTotalWeight},
  };
  for (const auto& [what, most] : rows) {
    const std::string row = "| " + what + " | " + std::to_string(most) + " |\n";
    EXPECT_NE(page.str().find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace sluice::schedule
