#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/verify.h"

namespace sluice::schedule {
namespace {

std::string printed(const Schedule& schedule) {
  std::ostringstream out;
  print_schedule(out, schedule);
  return out.str();
}

Result<Schedule> parsed(const std::string& text) {
  std::istringstream in{text};
  return parse_schedule(in);
}

void expect_round_trip(const Schedule& schedule) {
  const std::string text = printed(schedule);
  const Result<Schedule> again = parsed(text);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text;
  EXPECT_EQ(again.value(), schedule) << text;
  EXPECT_EQ(printed(again.value()), text);
}

void expect_not_printable(const Schedule& schedule, const std::string& why) {
  std::ostringstream out;
  try {
    print_schedule(out, schedule);
    FAIL() << "printed:\n" << out.str();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    EXPECT_EQ(error.what(), "the schedule cannot be written as text: " + why);
  }
  EXPECT_EQ(out.str(), "");
  EXPECT_THROW((void)hash_schedule(schedule), Error);
}

// Two ranks exchange and add everything: the smallest schedule with every kind of operation.
Schedule doubling() {
  Schedule schedule{"doubling", {.ranks = 2}, false, {}};
  for (Rank rank = 0; rank < 2; ++rank) {
    Program program{Chunking{3}, {"in", "spare"}};
    program.begin_step();
    program.send(1 - rank, {.first = 2, .count = 2});
    program.send(1 - rank, {.first = 1});
    program.receive_copy(1 - rank, {.buffer = 1, .first = 2, .count = 2});
    program.receive_reduce({.first = 1}, std::vector<Rank>{1 - rank, kOwn});
    program.local_reduce({.first = 2, .count = 2}, std::vector<BufferId>{1, 0});
    program.local_copy({.buffer = 2, .first = 0}, 1);
    schedule.programs.push_back(program);
  }
  return schedule;
}

TEST(TextForm, HasOneLineForEachOperation) {
  EXPECT_EQ(printed(doubling()),
            "sluice-schedule 1\n"
            "hash 2ccd66c2b3bc2a47\n"
            "algorithm doubling\n"
            "collective all_reduce\n"
            "ranks 2\n"
            "chunks 3\n"
            "scratch in spare\n"
            "rank 0 step 1 send buffer[2..0] to 1\n"
            "rank 0 step 1 send buffer[1] to 1\n"
            "rank 0 step 1 copy in[2..0] from 1\n"
            "rank 0 step 1 reduce buffer[1] from 1 + own\n"
            "rank 0 step 1 local reduce buffer[2..0] = in + buffer\n"
            "rank 0 step 1 local copy spare[0] = in\n"
            "rank 1 step 1 send buffer[2..0] to 0\n"
            "rank 1 step 1 send buffer[1] to 0\n"
            "rank 1 step 1 copy in[2..0] from 0\n"
            "rank 1 step 1 reduce buffer[1] from 0 + own\n"
            "rank 1 step 1 local reduce buffer[2..0] = in + buffer\n"
            "rank 1 step 1 local copy spare[0] = in\n");
}

TEST(TextForm, ReadsBackEveryKindOfOperation) { expect_round_trip(doubling()); }

TEST(TextForm, ReadsBackEveryHeaderField) {
  const Shape shape{
      .collective = Collective::Broadcast, .ranks = 8, .grid = {3, 5}, .root = 7, .segments = 4};
  const Chunking chunking{std::vector<std::int64_t>{3, std::int64_t{1} << 33, 1}};
  const Schedule schedule{"double_tree:left-1", shape, true,
                          std::vector<Program>(8, Program{chunking, {"a"}})};
  expect_round_trip(schedule);
  const std::string text = printed(schedule);
  EXPECT_NE(text.find("weights 3 8589934592 1\ngrid 3+5\nroot 7\nsegments 4\nordered\nscratch a\n"),
            std::string::npos)
      << text;
}

TEST(TextForm, WritesAnEvenGridAsAProduct) {
  for (const int nodes : {1, 2, 6}) {
    const Schedule schedule{
        "torus",
        {.ranks = 6, .grid = std::vector<int>(static_cast<std::size_t>(nodes), 6 / nodes)},
        false,
        std::vector<Program>(6, Program{Chunking{6}})};
    expect_round_trip(schedule);
    const std::string line = "grid " + std::to_string(nodes) + "x" + std::to_string(6 / nodes);
    EXPECT_NE(printed(schedule).find("\n" + line + "\n"), std::string::npos) << line;
  }
}

TEST(TextForm, ReadsBackEveryCollective) {
  for (const Collective collective : kCollectives) {
    expect_round_trip({"none", {.collective = collective}, false, {Program{Chunking{1}}}});
  }
}

TEST(TextForm, ReadsBackEveryRange) {
  constexpr int kChunks = 5;
  Program program{Chunking{kChunks}};
  program.begin_step();
  for (int first = 0; first < kChunks; ++first) {
    for (int count = 1; count <= kChunks; ++count) {
      program.send(0, {.first = first, .count = count});
    }
  }
  expect_round_trip({"ranges", {}, false, {program}});
}

TEST(TextForm, ReadsBackEmptyStepsAnywhere) {
  for (unsigned busy = 0; busy < 32; ++busy) {
    for (int steps = 0; steps <= 5; ++steps) {
      Program program{Chunking{1}};
      for (int step = 0; step < steps; ++step) {
        program.begin_step();
        if ((busy >> step & 1) != 0) program.send(1, {});
      }
      expect_round_trip({"gaps", {.ranks = 2}, false, {program, Program{Chunking{1}}}});
    }
  }
}

TEST(TextForm, ReadsALongReduce) {
  std::vector<Rank> sources;
  for (Rank rank = 999; rank > 0; --rank) sources.push_back(rank);
  sources.push_back(kOwn);
  Schedule schedule{
      "direct", {.ranks = 1000}, false, std::vector<Program>(1000, Program{Chunking{1}})};
  schedule.programs[0].begin_step();
  schedule.programs[0].receive_reduce({}, sources);
  expect_round_trip(schedule);
}

TEST(TextForm, IgnoresCommentsBlanksAndTheOrderOfRanks) {
  const Result<Schedule> loose = parsed(
      "sluice-schedule\t1 # the format\r\n"
      "# a comment\n"
      "\n"
      "  algorithm   doubling\n"
      "collective all_reduce\n"
      "ranks 002\n"
      "chunks 3\n"
      "weights 7 7 7\n"
      "scratch in spare\n"
      "rank 1 step 1 send buffer [ 2 .. 0 ] to 0\n"
      "rank 0 step 1 copy in[2..0]from 1\n"
      "rank 0 step 1 send buffer[2..0] to 1\n"
      "rank 1 step 1 send buffer[1..1] to 0\n"
      "rank 0 step 1 send buffer[1] to 1#no blank\n"
      "rank 0 step 1 reduce buffer[1] from 1+own\n"
      "rank 1 step 1 copy in[2..0] from 0\n"
      "rank 1 step 1 reduce buffer[1] from 0 + own\n"
      "rank 1 step 1 local reduce buffer[2..0] = in + buffer\n"
      "rank 0 step 1 local reduce buffer[2..0]=in+buffer\n"
      "rank 0 step 1 local copy spare[0] = in\n"
      "rank 1 step 1 local copy spare[0] = in\n"
      "rank 1 steps 1\n");
  ASSERT_TRUE(loose.ok()) << loose.status().message();
  EXPECT_EQ(loose.value(), doubling());
}

TEST(TextForm, HasADifferentHashForADifferentSchedule) {
  const Schedule plain = doubling();
  EXPECT_EQ(hash_schedule(plain), hash_schedule(doubling()));
  Schedule ordered = plain;
  ordered.ordered = true;
  Schedule longer = plain;
  longer.programs[1].begin_step();
  Schedule other = plain;
  other.programs[1].send(0, {});
  for (const Schedule& changed : {ordered, longer, other}) {
    EXPECT_NE(hash_schedule(changed), hash_schedule(plain));
  }
}

TEST(TextForm, RejectsATextCutAtAnyByte) {
  const Schedule whole = doubling();
  const std::string text = printed(whole);
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {
    EXPECT_FALSE(parsed(text.substr(0, bytes)).ok()) << text.substr(0, bytes);
  }
  const Result<Schedule> without_newline = parsed(text.substr(0, text.size() - 1));
  ASSERT_TRUE(without_newline.ok());
  EXPECT_EQ(without_newline.value(), whole);
}

TEST(TextForm, RejectsAChangedByteOrReadsTheSameSchedule) {
  const Schedule whole = doubling();
  const std::string text = printed(whole);
  for (std::size_t position = 0; position < text.size(); ++position) {
    for (const char c : {'0', '7', ' ', '\n', 'a', '#'}) {
      std::string changed = text;
      changed[position] = c;
      const Result<Schedule> read = parsed(changed);
      EXPECT_TRUE(!read.ok() || read.value() == whole) << changed;
    }
  }
}

TEST(TextForm, OfTheDocumentedExampleIsCanonicalAndProven) {
  std::ifstream in{SLUICE_SOURCE_DIR "/docs/schedule-format.md"};
  std::stringstream page;
  page << in.rdbuf();
  const std::string fence = "```schedule\n";
  const std::size_t begin = page.str().find(fence) + fence.size();
  const std::string example = page.str().substr(begin, page.str().find("```", begin) - begin);
  const Result<Schedule> schedule = parsed(example);
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  EXPECT_EQ(printed(schedule.value()), example);
  const Proof proof = verify(schedule.value());
  EXPECT_TRUE(proof.proven) << proof.reason;
  EXPECT_EQ(proof.steps, 4);
}

TEST(TextForm, RejectsSchedulesThatItCannotExpress) {
  const auto changed = [](auto change) {
    Schedule schedule = doubling();
    change(schedule);
    return schedule;
  };
  expect_not_printable(changed([](Schedule& s) { s.algorithm = "two words"; }),
                       "the algorithm has no valid name");
  expect_not_printable(changed([](Schedule& s) { s.programs.pop_back(); }),
                       "it does not have one program for each rank");
  expect_not_printable(changed([](Schedule& s) { s.shape.root = 1; }),
                       "its collective has no root");
  expect_not_printable(changed([](Schedule& s) {
                         s.shape.collective = Collective::Reduce;
                         s.shape.root = 2;
                       }),
                       "the root is not a rank");
  expect_not_printable(changed([](Schedule& s) { s.shape.segments = 0; }), "it has no segments");
  expect_not_printable(changed([](Schedule& s) {
                         s.shape.grid = {3, -1};
                       }),
                       "the nodes of its grid do not add up to its ranks");
  expect_not_printable(changed([](Schedule& s) { s.programs.assign(2, Program{Chunking{0}}); }),
                       "a chunk has no weight");
  expect_not_printable(changed([](Schedule& s) {
                         s.programs.assign(2, Program{Chunking{1}, {"buffer"}});
                       }),
                       "scratch names are not valid names");
  expect_not_printable(changed([](Schedule& s) { s.programs[1] = Program{Chunking{3}}; }),
                       "ranks 0 and 1 differ in chunks or scratch");
  const std::string missing = "rank 1, step 1 names a rank, buffer or chunk that does not exist";
  expect_not_printable(changed([](Schedule& s) { s.programs[1].send(2, {}); }), missing);
  expect_not_printable(changed([](Schedule& s) { s.programs[1].send(0, {.count = 4}); }), missing);
  expect_not_printable(changed([](Schedule& s) { s.programs[1].send(0, {.buffer = 3}); }), missing);
  expect_not_printable(changed([](Schedule& s) { s.programs[1].receive_copy(kOwn, {}); }), missing);
  expect_not_printable(changed([](Schedule& s) { s.programs[1].receive_reduce({}, {}); }), missing);
  expect_not_printable(changed([](Schedule& s) { s.programs[1].local_copy({}, -1); }), missing);
}

}  // namespace
}  // namespace sluice::schedule
