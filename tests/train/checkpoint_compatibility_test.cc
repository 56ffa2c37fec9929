// Loads tests/train/checkpoint-v1, which version 0.1 wrote. Later versions must load it, too.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "bench/allreduce/temporary_folder.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/train/checkpoint_training.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;

constexpr int kStoredRanks = 2;
constexpr int kStoredSteps = 5;

fs::path stored_checkpoints() { return fs::path{SLUICE_SOURCE_DIR} / "tests/train/checkpoint-v1"; }

std::string bytes_of(const fs::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

// The checkpoint has every kind of state: 16-bit wire, sparse gradients, a mean in flight, loss
// scaling. If the loaded state is saved again, the files must be the same: nothing is lost or read
// wrongly.
TEST(CheckpointCompatibility, AStoredCheckpointLoadsAndIsSavedWithTheSameBytes) {
  const bench::TemporaryFolder folder;
  const fs::path again = folder.make("run");
  libtorch::run_torch_ranks(kStoredRanks, [&](Communicator& comm) {
    const FoundCheckpoint found = load_latest(stored_checkpoints(), comm).value();
    ASSERT_TRUE(found.checkpoint.has_value()) << testing::PrintToString(found.refused);
    const TrainingState& state = found.checkpoint->state();
    EXPECT_EQ(state.step, kStoredSteps);
    EXPECT_EQ(state.seed, 42U);
    EXPECT_EQ(state.settings, saved_state(kStoredSteps).settings);
    EXPECT_EQ(state.notes, saved_state(kStoredSteps).notes);
    EXPECT_EQ(state.accuracy, 71.25);
    EXPECT_EQ(state.best_accuracy, 80);
    EXPECT_EQ(state.best_step, 3);

    CheckpointTraining training{comm, gradient_settings().at("all at once")};
    const Status applied = found.checkpoint->apply(training.objects());
    ASSERT_TRUE(applied.ok()) << applied.message();
    const std::uint64_t run =
        check_checkpoint(checkpoint_path(stored_checkpoints(), kStoredSteps)).value().run;
    CheckpointWriter writer{
        {.folder = again, .rank = comm.rank(), .ranks = kStoredRanks, .run = run}};
    ASSERT_TRUE(writer.save(state, training.objects()).ok());
    const Status written = writer.finish();
    ASSERT_TRUE(written.ok()) << written.message();
    training.step(kStoredSteps);
  });
  for (const int owner : {CheckpointHeader::kCommon, 0, 1}) {
    const auto file = [owner](const fs::path& from) {
      return part_path(checkpoint_path(from, kStoredSteps), owner);
    };
    EXPECT_FALSE(bytes_of(file(again)).empty());
    EXPECT_TRUE(bytes_of(file(again)) == bytes_of(file(stored_checkpoints()))) << owner;
  }
}

TEST(CheckpointCompatibility, AStoredCheckpointLoadsOnAnotherNumberOfRanks) {
  libtorch::run_torch_ranks(1, [&](Communicator& comm) {
    const FoundCheckpoint found = load_latest(stored_checkpoints(), comm).value();
    ASSERT_TRUE(found.checkpoint.has_value()) << testing::PrintToString(found.refused);
    EXPECT_EQ(found.checkpoint->ranks(), kStoredRanks);
    CheckpointTraining training{comm, gradient_settings().at("all at once")};
    const Status applied = found.checkpoint->apply(training.objects());
    ASSERT_TRUE(applied.ok()) << applied.message();
    training.step(kStoredSteps);
  });
}

}  // namespace
}  // namespace sluice::train
