// canary_test.cc - schedules with one error each.
//
// A canary is a file of canaries/ in the text form. Its line "# expect: words" has the words that
// the verifier's reason must contain. Canaries that the text form cannot express are built here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/verify.h"

namespace sluice::mutation {
namespace {

struct Canary {
  std::string name;
  std::string expect;
  Schedule schedule;
};

std::vector<std::filesystem::path> canary_files() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder{SLUICE_SOURCE_DIR "/tests/mutation/canaries"};
  for (const auto& entry : std::filesystem::directory_iterator{folder}) files.push_back(entry);
  std::sort(files.begin(), files.end());
  return files;
}

Canary read_canary(const std::filesystem::path& file) {
  static const std::string kExpect = "# expect: ";
  std::stringstream text;
  text << std::ifstream{file}.rdbuf();
  Canary canary{.name = file.stem().string()};
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(kExpect)) canary.expect = line.substr(kExpect.size());
  text.clear();
  text.seekg(0);
  canary.schedule = parse_schedule(text).value();
  return canary;
}

// A broadcast of two chunks from rank 0 to rank 1, with one thing changed.
Schedule broadcast_to(Rank peer, Range range) {
  Schedule schedule{"canary", {.collective = Collective::Broadcast, .ranks = 2}, false, {}};
  schedule.programs.assign(2, Program{Chunking{2}, {"aside"}});
  for (Program& program : schedule.programs) program.begin_step();
  schedule.programs[0].send(peer, range);
  schedule.programs[1].receive_copy(0, {range.buffer, range.first, range.count});
  return schedule;
}

Schedule without_program_of_rank_1() {
  Schedule schedule = broadcast_to(1, {.count = 2});
  schedule.programs.pop_back();
  return schedule;
}

Schedule with_other_chunks_at_rank_1() {
  Schedule schedule = broadcast_to(1, {.count = 2});
  schedule.programs[1] = Program{Chunking{3}};
  schedule.programs[1].begin_step();
  schedule.programs[1].receive_copy(0, {.count = 2});
  return schedule;
}

Schedule with_root(Rank root) {
  Schedule schedule = broadcast_to(1, {.count = 2});
  schedule.shape.root = root;
  return schedule;
}

std::vector<Canary> all_canaries() {
  std::vector<Canary> canaries{
      {"chunk_out_of_range", "chunk", broadcast_to(1, {.first = 2, .count = 1})},
      {"negative_chunk", "chunk", broadcast_to(1, {.first = -1, .count = 2})},
      {"more_chunks_than_there_are", "chunk", broadcast_to(1, {.count = 3})},
      {"no_chunks", "chunk", broadcast_to(1, {.count = 0})},
      {"count_that_overflows", "chunk", broadcast_to(1, {.first = 1, .count = 2147483647})},
      {"peer_out_of_range", "rank 2", broadcast_to(2, {.count = 2})},
      {"negative_peer", "rank", broadcast_to(-1, {.count = 2})},
      {"buffer_out_of_range", "buffer", broadcast_to(1, {.buffer = 2, .count = 2})},
      {"negative_buffer", "buffer", broadcast_to(1, {.buffer = -1, .count = 2})},
      {"missing_program", "program", without_program_of_rank_1()},
      {"other_chunks", "", with_other_chunks_at_rank_1()},
      {"root_out_of_range", "root", with_root(2)},
  };
  for (const std::filesystem::path& file : canary_files()) canaries.push_back(read_canary(file));
  return canaries;
}

TEST(Canaries, StartFromABroadcastThatIsRight) {
  const Schedule schedule = broadcast_to(1, {.count = 2});
  EXPECT_TRUE(verify(schedule).proven) << verify(schedule).reason;
}

TEST(Canaries, AreAllRejectedForTheRightReason) {
  for (const Canary& canary : all_canaries()) {
    const Proof proof = verify(canary.schedule);
    EXPECT_FALSE(proof.proven) << canary.name;
    EXPECT_NE(proof.reason, "") << canary.name;
    EXPECT_EQ(proof.reason.find('\n'), std::string::npos) << canary.name << ": " << proof.reason;
    EXPECT_NE(proof.reason.find(canary.expect), std::string::npos)
        << canary.name << " should contain \"" << canary.expect << "\": " << proof.reason;
  }
}

}  // namespace
}  // namespace sluice::mutation
