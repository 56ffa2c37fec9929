// What a file that is wrong, too large or no schedule at all is told.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "sluice/schedule.h"

namespace sluice::schedule {
namespace {

std::string refusal(std::istream& in) {
  const Result<Schedule> result = parse_schedule(in);
  if (result.ok()) return "";
  EXPECT_EQ(result.status().code(), Code::InvalidInput);
  return result.status().message();
}

std::string refusal(const std::string& text) {
  std::istringstream in{text};
  return refusal(in);
}

// The header of two ranks and four chunks, then one more line, which is line 6.
std::string refusal_after_header(const std::string& line) {
  return refusal("sluice-schedule 1\nalgorithm a\ncollective all_reduce\nranks 2\nchunks 4\n" +
                 line + "\n");
}

TEST(Parse, AcceptsTheHeadersThatTheseTestsBuildOn) {
  EXPECT_EQ(refusal_after_header("rank 0 step 1 send buffer[0] to 1"), "");
}

TEST(Parse, RefusesWhatIsNoSchedule) {
  EXPECT_EQ(refusal(""),
            "line 1, column 1: expected \"sluice-schedule\", found the end of the file");
  EXPECT_EQ(refusal("\n"),
            "line 1, column 1: expected \"sluice-schedule\", found the end of the line");
  EXPECT_EQ(refusal("\x7f"
                    "ELF\x02 x\n"),
            "line 1, column 1: expected \"sluice-schedule\", found \"\\x7fELF\\x02\"");
  EXPECT_EQ(refusal("sluice-schedule 2\n"),
            "line 1, column 17: expected a version that this program reads (only 1), found \"2\"");
  EXPECT_EQ(refusal("sluice-schedule 1 now\n"),
            "line 1, column 19: expected the end of the line, found \"now\"");
}

TEST(Parse, RefusesAnInputThatCannotBeRead) {
  std::ifstream missing{"no/such/file"};
  EXPECT_EQ(refusal(missing), "line 1, column 1: the input cannot be read");
  std::ifstream folder{SLUICE_SOURCE_DIR};
  EXPECT_EQ(refusal(folder), "line 1, column 1: the input cannot be read");
}

TEST(Parse, RefusesAHeaderOutOfOrder) {
  const std::string version = "sluice-schedule 1\n";
  EXPECT_EQ(refusal(version),
            "line 2, column 1: expected hash or algorithm, found the end of the file");
  EXPECT_EQ(refusal(version + "ranks 4\n"),
            "line 2, column 1: expected hash or algorithm, found \"ranks\"");
  EXPECT_EQ(refusal(version + "algoritm ring\n"),
            "line 2, column 1: expected hash or algorithm, found \"algoritm\" (did you mean "
            "algorithm?)");
  EXPECT_EQ(refusal(version + "algorithm a\ncollective all_reduce\nrank 0 step 1\n"),
            "line 4, column 1: expected ranks, found \"rank\"");
  EXPECT_EQ(refusal_after_header("weigths 1 2 3 4"),
            "line 6, column 1: expected weights, grid, root, segments, ordered, scratch or rank, "
            "found \"weigths\" (did you mean weights?)");
  EXPECT_EQ(refusal_after_header("ordered\nordered"),
            "line 7, column 1: expected scratch or rank, found \"ordered\"");
  EXPECT_EQ(refusal(version + "algorithm a\ncollective reduce\nranks 2\nchunks 4\nordered\n"),
            "line 6, column 1: expected weights, grid or root, found \"ordered\"");
}

TEST(Parse, RefusesWrongHeaderFields) {
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
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal(text), message);
}

// " aa ab ...": last + 1 names of two letters.
std::string names_to(int last) {
  std::string names;
  for (int i = 0; i <= last; ++i)
    names += " " + std::string{static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26)};
  return names;
}

TEST(Parse, RefusesWrongOptionalFields) {
  const std::pair<std::string, std::string> cases[] = {
      {"weights 1 2 3",
       "14: expected the weight of chunk 3 from 1 to 1099511627770, found the end of "
       "the line"},
      {"weights 1 2 3 4 5", "17: expected the end of the line, found \"5\""},
      {"weights 0 1 1 1", "9: expected the weight of chunk 0 from 1 to 1099511627773, found \"0\""},
      {"weights 1099511627773 1 2 1", "25: expected the weight of chunk 2 (only 1), found \"2\""},
      {"grid 3", "6: expected a node's number of ranks from 1 to 2, found \"3\""},
      {"grid 1", "6: the grid does not hold 2 ranks"},
      {"grid 1+1+1", "9: expected the end of the line, found \"+1\""},
      {"grid 2x2", "8: the grid does not hold 2 ranks"},
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
    EXPECT_EQ(refusal_after_header(line), "line 6, column " + message);
  }
}

TEST(Parse, RefusesWrongOperations) {
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
    EXPECT_EQ(refusal_after_header(line), "line 6, column " + message);
  }
}

TEST(Parse, RefusesLinesOfARankInTheWrongOrder) {
  const std::string send = " send buffer[0] to 1";
  EXPECT_EQ(refusal_after_header("rank 0 step 2" + send + "\nrank 0 step 1" + send),
            "line 7, column 13: step 1 comes after step 2 of the same rank");
  EXPECT_EQ(refusal_after_header("rank 0 step 2" + send + "\nrank 0 steps 1"),
            "line 7, column 14: step 1 comes after step 2 of the same rank");
  EXPECT_EQ(refusal_after_header("rank 0 steps 3\nrank 0 step 3" + send),
            "line 7, column 6: rank 0 has ended with its steps line");
  EXPECT_EQ(
      refusal_after_header("rank 0 step 1 local copy buffer[0] = buffer\nrank 0 step 1" + send),
      "line 7, column 15: a step's transfers stand before its local operations");
  EXPECT_EQ(
      refusal_after_header("rank 0 step 1 local copy buffer[0] = buffer\nrank 0 step 2" + send),
      "");
  EXPECT_EQ(refusal_after_header("rank 0 step 1" + send + "\nordered"),
            "line 7, column 1: expected \"rank\", found \"ordered\"");
}

TEST(Parse, RefusesATornFileWithoutAHash) {
  EXPECT_EQ(refusal("sluice-schedule 1\nalgorithm a\ncollective all_reduce\nranks 2\nchunks 4"),
            "line 5, column 9: the last line does not end with a newline, so the file may be cut "
            "short; add the newline if it is whole");
}

TEST(Parse, RefusesAWrongHashAndSaysTheRightOne) {
  EXPECT_EQ(
      refusal("sluice-schedule 1\n\nhash 0123456789abcdef\nalgorithm a\ncollective all_reduce\n"
              "ranks 1\nchunks 1\n"),
      "line 3, column 6: the file says hash 0123456789abcdef, but its schedule has "
      "500620ca28cedf9a: it was cut short or changed; if the change is meant, remove the hash "
      "line");
}

}  // namespace
}  // namespace sluice::schedule
