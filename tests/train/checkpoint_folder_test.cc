#include "train/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/file.h"
#include "bench/allreduce/temporary_folder.h"
#include "train/checkpoint/sections.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;

constexpr int kOwners = 2;

class CheckpointFolder : public testing::Test {
 protected:
  // Writes the files of all owners except `missing`.
  void write(std::int64_t step, double accuracy = -1, std::optional<int> missing = {},
             std::uint64_t run = 1) {
    const fs::path checkpoint = checkpoint_path(path_, step);
    fs::create_directories(checkpoint);
    for (int owner = CheckpointHeader::kCommon; owner < kOwners; ++owner) {
      if (owner == missing) continue;
      SectionWriter list;
      list.add_copy<float>("mean", std::vector<float>{static_cast<float>(step + owner), 1});
      list.add_value("count", std::int64_t{step + owner});
      ASSERT_TRUE(
          write_part(
              part_path(checkpoint, owner),
              {.step = step, .run = run, .ranks = kOwners, .owner = owner, .accuracy = accuracy},
              list.sections())
              .ok());
    }
  }
  std::set<std::int64_t> steps() const {
    const std::vector<std::int64_t> all = checkpoint_steps(path_);
    return {all.begin(), all.end()};
  }
  // Returns the reason why step 9 is refused. The checkpoint of step 5 is valid.
  std::string refusal() const {
    const NewestCheckpoint newest = newest_checkpoint(path_);
    EXPECT_EQ(newest.step, 5);
    if (newest.refused.size() != 1) return "";
    const std::string begin = checkpoint_path(path_, 9).string() + " is not used; ";
    EXPECT_TRUE(newest.refused[0].starts_with(begin)) << newest.refused[0];
    return newest.refused[0].substr(begin.size());
  }

  bench::TemporaryFolder folder_;
  fs::path path_ = folder_.make("checkpoints");
};

TEST_F(CheckpointFolder, TheNewestValidCheckpointIsFound) {
  EXPECT_FALSE(newest_checkpoint(path_).path);
  EXPECT_FALSE(newest_checkpoint(path_ / "none").path);
  write(9);
  write(10);
  write(100'000'000'000);
  std::ofstream{path_ / "step-x"} << "not ours";
  const NewestCheckpoint newest = newest_checkpoint(path_);
  EXPECT_EQ(newest.step, 100'000'000'000);
  EXPECT_EQ(newest.path, path_ / "step-100000000000");
  EXPECT_TRUE(newest.refused.empty());
}

TEST_F(CheckpointFolder, ACheckpointNeedsAllItsFiles) {
  write(5);
  write(9, -1, CheckpointHeader::kCommon);
  EXPECT_EQ(refusal(), "common: it is missing");
  base::remove_folder(checkpoint_path(path_, 9));
  write(9, -1, 1);
  EXPECT_EQ(refusal(), "rank-1: it is missing");
  write(9);
  write(9, -1, 1, 2);  // the file of rank 1 comes from an earlier run
  EXPECT_EQ(refusal(), "rank-1: it was written by another run than common");
  write(9);
  const fs::path file = part_path(checkpoint_path(path_, 9), 0);
  fs::copy_file(part_path(checkpoint_path(path_, 9), 1), file,
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(refusal(), "rank-0: it is the file of another rank");
  std::ofstream{file} << "# a recipe";
  EXPECT_EQ(refusal(), "rank-0: it is not a checkpoint of Sluice");
  base::remove_folder(checkpoint_path(path_, 9));
  fs::copy(checkpoint_path(path_, 5), checkpoint_path(path_, 9));
  EXPECT_EQ(refusal(), "it is of step 5");
}

TEST_F(CheckpointFolder, PruningKeepsTheNewestAndTheBest) {
  for (int step = 1; step <= 7; ++step) write(step, step == 2 || step == 3 ? 90 : 50 + step);
  write(8, -1, 0);
  prune_checkpoints(path_, 3);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{2, 5, 6, 7, 8})) << "step 8 may still be written";
  write(9);
  prune_checkpoints(path_, 3);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{2, 6, 7, 9}));
  for (int step = 10; step <= 12; ++step) write(step);
  prune_checkpoints(path_, 3);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{2, 10, 11, 12}));
}

TEST_F(CheckpointFolder, PruningWithoutAccuraciesKeepsTheNewest) {
  for (int step = 1; step <= 5; ++step) write(step);
  prune_checkpoints(path_, 3);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{3, 4, 5}));
}

TEST_F(CheckpointFolder, FloatsAreAveragedOverAllRanks) {
  write(4);
  const fs::path checkpoint = checkpoint_path(path_, 4);
  const CheckpointHeader header = check_checkpoint(checkpoint).value();
  const Result<CheckpointPart> mean = mean_part(checkpoint, header);
  ASSERT_TRUE(mean.ok());
  SectionReader reader{mean.value()};
  EXPECT_EQ(reader.vector<float>("mean"), (std::vector<float>{4.5F, 1}));
  EXPECT_EQ(reader.value<std::int64_t>("count"), 4) << "rank 0's";
  fs::remove(part_path(checkpoint, 1));
  EXPECT_NE(mean_part(checkpoint, header).status().message().find("it is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::train
