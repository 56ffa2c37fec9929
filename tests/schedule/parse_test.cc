// Errors of the text form. For any input, however large or wrong, reading ends soon and takes
// little memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <functional>
#include <istream>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "schedule/text_form.h"
#include "sluice/schedule.h"

namespace sluice::schedule {
namespace {

std::string message_for(std::istream& in) {
  const Result<Schedule> result = parse_schedule(in);
  if (result.ok()) return "";
  EXPECT_EQ(result.status().code(), Code::InvalidInput);
  return result.status().message();
}

std::string message_for(const std::string& text) {
  std::istringstream in{text};
  return message_for(in);
}

// The header of two ranks and four chunks, then one more line, which is line 6.
std::string message_after_header(const std::string& line) {
  return message_for("sluice-schedule 1\nalgorithm a\ncollective all_reduce\nranks 2\nchunks 4\n" +
                     line + "\n");
}

TEST(Parse, AcceptsTheHeaderOfTheseTests) {
  EXPECT_EQ(message_after_header("rank 0 step 1 send buffer[0] to 1"), "");
}

TEST(Parse, RejectsATextThatIsNotASchedule) {
  EXPECT_EQ(message_for(""),
            "line 1, column 1: expected \"sluice-schedule\", found the end of the file");
  EXPECT_EQ(message_for("\n"),
            "line 1, column 1: expected \"sluice-schedule\", found the end of the line");
  EXPECT_EQ(message_for("\x7f"
                        "ELF\x02 x\n"),
            "line 1, column 1: expected \"sluice-schedule\", found \"\\x7fELF\\x02\"");
  EXPECT_EQ(message_for("sluice-schedule 2\n"),
            "line 1, column 17: expected a version that this program reads (only 1), found \"2\"");
  EXPECT_EQ(message_for("sluice-schedule 1 now\n"),
            "line 1, column 19: expected the end of the line, found \"now\"");
}

TEST(Parse, RejectsAnInputThatCannotBeRead) {
  std::ifstream missing{"no/such/file"};
  EXPECT_EQ(message_for(missing), "line 1, column 1: the input cannot be read");
  std::ifstream folder{SLUICE_SOURCE_DIR};
  EXPECT_EQ(message_for(folder), "line 1, column 1: the input cannot be read");
}

TEST(Parse, RejectsAHeaderOutOfOrder) {
  const std::string version = "sluice-schedule 1\n";
  EXPECT_EQ(message_for(version),
            "line 2, column 1: expected hash or algorithm, found the end of the file");
  EXPECT_EQ(message_for(version + "ranks 4\n"),
            "line 2, column 1: expected hash or algorithm, found \"ranks\"");
  EXPECT_EQ(message_for(version + "algoritm ring\n"),
            "line 2, column 1: expected hash or algorithm, found \"algoritm\" (did you mean "
            "algorithm?)");
  EXPECT_EQ(message_for(version + "algorithm a\ncollective all_reduce\nrank 0 step 1\n"),
            "line 4, column 1: expected ranks, found \"rank\"");
  EXPECT_EQ(message_after_header("weigths 1 2 3 4"),
            "line 6, column 1: expected weights, grid, root, segments, ordered, equal_chunks, "
            "scratch or rank, "
            "found \"weigths\" (did you mean weights?)");
  EXPECT_EQ(message_after_header("ordered\nordered"),
            "line 7, column 1: expected equal_chunks, scratch or rank, found \"ordered\"");
  EXPECT_EQ(message_for(version + "algorithm a\ncollective reduce\nranks 2\nchunks 4\nordered\n"),
            "line 6, column 1: expected weights, grid or root, found \"ordered\"");
}

TEST(Parse, RejectsWrongHeaderFields) {
  const std::string version = "sluice-schedule 1\n";
  const std::string two = version + "algorithm a\ncollective all_reduce\n";
  const std::pair<std::string, std::string> cases[] = {
      {version + "hash 123\n",
       "line 2, column 6: expected a hash of 16 hexadecimal digits, found \"123\""},
      {version + "hash 0123456789ABCDEF\n",
       "line 2, column 6: expected a hash of 16 hexadecimal digits, found \"0123456789ABCDEF\""},
      {version + "hash 0123456789abcdef0\n",
       "line 2, column 6: expected a hash of 16 hexadecimal digits, found \"0123456789abcdef0\""},
      {version + "algorithm 2x\n", "line 2, column 11: expected an algorithm's name, found \"2x\""},
      {version + "algorithm " + std::string(65, 'a') + "\n",
       "line 2, column 11: a name has at most 64 bytes"},
      {version + "algorithm a\ncollective allreduce\n",
       "line 3, column 12: expected all_reduce, reduce_scatter, all_gather, broadcast or reduce, "
       "found \"allreduce\" (did you mean all_reduce?)"},
      {two + "ranks 0\n",
       "line 4, column 7: expected a number of ranks from 1 to 32768, found \"0\""},
      {two + "ranks 99999999999999999999999999\n",
       "line 4, column 7: expected a number of ranks from 1 to 32768, found "
       "\"99999999999999999999999999\""},
      {two + "ranks -1\n",
       "line 4, column 7: expected a number of ranks from 1 to 32768, found \"-1\""},
      {two + "ranks 4k\n", "line 4, column 7: expected a number of ranks, found \"4k\""},
      {two + "ranks 1\nchunks 65537\n",
       "line 5, column 8: expected a number of chunks from 1 to 65536, found \"65537\""},
      {two + "ranks 32768\nchunks 513\n",
       "line 5, column 8: ranks times chunks may be at most 16777216"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(message_for(text), message);
}

// " aa ab ...": last + 1 names of two letters.
std::string names_to(int last) {
  std::string names;
  for (int i = 0; i <= last; ++i)
    names += " " + std::string{static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
  return names;
}

TEST(Parse, RejectsWrongOptionalFields) {
  const std::pair<std::string, std::string> cases[] = {
      {"weights 1 2 3",
       "14: expected the weight of chunk 3 from 1 to 1099511627770, found the end of "
       "the line"},
      {"weights 1 2 3 4 5", "17: expected the end of the line, found \"5\""},
      {"weights 0 1 1 1", "9: expected the weight of chunk 0 from 1 to 1099511627773, found \"0\""},
      {"weights 1099511627773 1 2 1", "25: expected the weight of chunk 2 (only 1), found \"2\""},
      {"grid 3", "6: expected a node's number of ranks from 1 to 2, found \"3\""},
      {"grid 1", "6: the nodes of the grid do not add up to 2 ranks"},
      {"grid 1+1+1", "9: expected the end of the line, found \"+1\""},
      {"grid 2x2", "8: the nodes of the grid do not add up to 2 ranks"},
      {"grid 2x", "8: expected a node's number of ranks from 1 to 2, found the end of the line"},
      {"grid 1+a", "8: expected a node's number of ranks (only 1), found \"a\""},
      {"root 0", "1: all_reduce has no root"},
      {"segments 0", "10: expected a number of segments from 1 to 65536, found \"0\""},
      {"ordered yes", "9: expected the end of the line, found \"yes\""},
      {"scratch", "8: expected a scratch buffer's name, found the end of the line"},
      {"scratch a a",
       "11: expected another name, of at most 64 bytes, for each scratch buffer, found "
       "\"a\""},
      {"scratch buffer",
       "9: expected another name, of at most 64 bytes, for each scratch buffer, "
       "found \"buffer\""},
      {"scratch" + names_to(64), "201: there may be at most 64 scratch buffers"},
  };
  for (const auto& [line, message] : cases) {
    EXPECT_EQ(message_after_header(line), "line 6, column " + message);
  }
}

TEST(Parse, RejectsWrongOperations) {
  const std::pair<std::string, std::string> cases[] = {
      {"rank", "5: expected a rank from 0 to 1, found the end of the line"},
      {"rank 2 step 1", "6: expected a rank from 0 to 1, found \"2\""},
      {"rank 0step 1", "6: expected a rank, found \"0step\""},
      {"rank 0 stop 1", "8: expected step or steps, found \"stop\" (did you mean step?)"},
      {"rank 0 step 0 send", "13: expected a step from 1 to 65536, found \"0\""},
      {"rank 0 step 65537 send", "13: expected a step from 1 to 65536, found \"65537\""},
      {"rank 0 step 1 sent buffer[0] to 1",
       "15: expected send, copy, reduce or local, found \"sent\" (did you mean send?)"},
      {"rank 0 step 1 send bufer[0] to 1",
       "20: expected buffer, found \"bufer[0]\" (did you mean buffer?)"},
      {"rank 0 step 1 send buffer to 1", "27: expected \"[\", found \"to\""},
      {"rank 0 step 1 send buffer[4] to 1", "27: expected a chunk from 0 to 3, found \"4]\""},
      {"rank 0 step 1 send buffer[0..4] to 1", "30: expected a chunk from 0 to 3, found \"4]\""},
      {"rank 0 step 1 send buffer[0:2] to 1", "27: expected a chunk, found \"0:2]\""},
      {"rank 0 step 1 send buffer[0 to 1", "29: expected \"]\", found \"to\""},
      {"rank 0 step 1 send buffer[0] from 1", "30: expected \"to\", found \"from\""},
      {"rank 0 step 1 send buffer[0] to 2", "33: expected a rank from 0 to 1, found \"2\""},
      {"rank 0 step 1 send buffer[0] to 1 + 0", "35: expected the end of the line, found \"+\""},
      {"rank 0 step 1 copy buffer[0] from own", "35: expected a rank from 0 to 1, found \"own\""},
      {"rank 0 step 1 reduce buffer[0] from",
       "36: expected a rank from 0 to 1, found the end of the "
       "line"},
      {"rank 0 step 1 reduce buffer[0] from 1 +",
       "40: expected a rank from 0 to 1, found the end of "
       "the line"},
      {"rank 0 step 1 reduce buffer[0] = 1 + own", "32: expected \"from\", found \"=\""},
      {"rank 0 step 1 local send buffer[0] to 1", "21: expected copy or reduce, found \"send\""},
      {"rank 0 step 1 local copy buffer[0] = in", "38: expected buffer, found \"in\""},
      {"rank 0 step 1 local copy buffer[0] = buffer + buffer",
       "45: expected the end of the line, found \"+\""},
  };
  for (const auto& [line, message] : cases) {
    EXPECT_EQ(message_after_header(line), "line 6, column " + message);
  }
}

TEST(Parse, RejectsLinesOfARankInTheWrongOrder) {
  const std::string send = " send buffer[0] to 1";
  EXPECT_EQ(message_after_header("rank 0 step 2" + send + "\nrank 0 step 1" + send),
            "line 7, column 13: step 1 comes after step 2 of the same rank");
  EXPECT_EQ(message_after_header("rank 0 step 2" + send + "\nrank 0 steps 1"),
            "line 7, column 14: step 1 comes after step 2 of the same rank");
  EXPECT_EQ(message_after_header("rank 0 steps 3\nrank 0 step 3" + send),
            "line 7, column 6: rank 0 has ended with its steps line");
  EXPECT_EQ(
      message_after_header("rank 0 step 1 local copy buffer[0] = buffer\nrank 0 step 1" + send),
      "line 7, column 15: the transfers of a step come before its local operations");
  EXPECT_EQ(
      message_after_header("rank 0 step 1 local copy buffer[0] = buffer\nrank 0 step 2" + send),
      "");
  EXPECT_EQ(message_after_header("rank 0 step 1" + send + "\nordered"),
            "line 7, column 1: expected \"rank\", found \"ordered\"");
}

TEST(Parse, RejectsATruncatedFileWithoutAHash) {
  EXPECT_EQ(message_for("sluice-schedule 1\nalgorithm a\ncollective all_reduce\nranks 2\nchunks 4"),
            "line 5, column 9: the last line does not end with a newline, so the file may be cut "
            "short; if it is complete, add the newline");
}

TEST(Parse, RejectsAWrongHashAndNamesTheRightOne) {
  EXPECT_EQ(
      message_for("sluice-schedule 1\n\nhash 0123456789abcdef\nalgorithm a\ncollective all_reduce\n"
                  "ranks 1\nchunks 1\n"),
      "line 3, column 6: the file has hash 0123456789abcdef, but its schedule has "
      "500620ca28cedf9a: it was cut short or changed; if you meant the change, remove the hash "
      "line");
}

// Returns `head`, then blocks that `next` makes, without end.
class Endless : public std::streambuf {
 public:
  Endless(std::string head, std::function<void(std::string&)> next)
      : block_{std::move(head)}, next_{std::move(next)} {
    show();
  }

  std::int64_t produced() const { return produced_; }

 protected:
  int_type underflow() override {
    block_.clear();
    next_(block_);
    show();
    return traits_type::to_int_type(block_.front());
  }

 private:
  void show() {
    produced_ += std::ssize(block_);
    setg(block_.data(), block_.data(), block_.data() + block_.size());
  }

  std::string block_;
  std::function<void(std::string&)> next_;
  std::int64_t produced_ = 0;
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
  std::string message;
  std::int64_t bytes;
};

Reading read(std::string head, std::function<void(std::string&)> next) {
  Endless endless{std::move(head), std::move(next)};
  std::istream in{&endless};
  const Result<Schedule> result = parse_schedule(in);
  return {result.status().message(), endless.produced()};
}

TEST(ParseLimits, RejectGarbageAtItsFirstLine) {
  const Reading reading = read("", random_block);
  EXPECT_TRUE(reading.message.starts_with("line 1, column 1: expected \"sluice-schedule\", found"));
  EXPECT_LT(reading.bytes, 1 << 20);
  EXPECT_LT(reading.message.size(), 300u);
}

TEST(ParseLimits, RejectGarbageAfterAHeader) {
  const Reading reading = read(header(2, 2), random_block);
  EXPECT_TRUE(reading.message.starts_with("line 6, column ")) << reading.message;
  EXPECT_LT(reading.bytes, 1 << 20);
}

TEST(ParseLimits, RejectALineWithoutEnd) {
  for (const std::string& piece : {std::string("x"), std::string(1, '\0'), std::string("# ")}) {
    const Reading reading = read(header(2, 2), repeated(piece));
    EXPECT_EQ(reading.message, "line 6, column 1048577: the line is longer than 1048576 bytes");
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

TEST(ParseLimits, RejectEmptyLinesWithoutEnd) {
  EXPECT_EQ(read(header(2, 2), repeated("\n")).message,
            "line 16777217, column 1: the file has more than 16777216 lines");
}

TEST(ParseLimits, RejectCommentsWithoutEnd) {
  const Reading reading = read(header(2, 2), repeated("#" + std::string(9998, '.') + "\n"));
  EXPECT_EQ(reading.message.substr(reading.message.find(": ")),
            ": the file is longer than 1073741824 bytes");
  EXPECT_LT(reading.bytes, kMaxTextBytes + (16 << 20));
}

TEST(ParseLimits, RejectOperationsWithoutEnd) {
  EXPECT_EQ(read(header(2, 2), repeated("rank 1 step 1 send buffer[0] to 0\n")).message,
            "line 4194310, column 13: there may be at most 4194304 operations");
}

TEST(ParseLimits, RejectSourcesWithoutEnd) {
  const std::string begin = "rank 0 step 1 reduce buffer[0] from own";
  std::string line = begin;
  for (int i = 0; i < 99'999; ++i) line += "+0";
  // 83 lines have 100,000 sources each. The error is at the first source past the limit.
  const std::int64_t column = std::ssize(begin) + 2 * (kMaxSources - 8'300'000);
  EXPECT_EQ(read(header(2, 2), repeated(line + "\n")).message,
            "line 89, column " + std::to_string(column) +
                ": the sources of all reduces may add up to at most 8388608");
}

TEST(ParseLimits, RejectTooManySteps) {
  std::string lines;
  for (int rank = 0; rank < 65; ++rank) {
    lines += "rank " + std::to_string(rank) + " steps 65536\n";
  }
  std::istringstream in{header(65, 2) + lines};
  EXPECT_EQ(parse_schedule(in).status().message(),
            "line 70, column 15: the steps of all ranks may add up to at most 4194304");
}

TEST(ParseLimits, AcceptWeightsForTheLargestNumberOfRanksTimesChunks) {
  std::string more = "weights";
  for (int chunk = 0; chunk < 512; ++chunk) more += " " + std::to_string(1 + chunk);
  std::istringstream in{header(32768, 512, more + "\n")};
  EXPECT_TRUE(parse_schedule(in).ok());
}

// This test is the last one: the high-water mark includes all tests above.
TEST(ParseLimits, KeepMemoryBelowAGibibyte) {
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
      {"bytes per line", kMaxLineBytes},
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
