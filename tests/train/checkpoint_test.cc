// Compares resumed trainings with trainings that were never interrupted.
#include "train/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "bench/allreduce/temporary_folder.h"
#include "gradient/reducer.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/train/checkpoint_training.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;
using Training = CheckpointTraining;
using Optimizer = Training::Optimizer;

constexpr int kHalf = 5;
constexpr int kWhole = 9;

// Takes kHalf steps and saves a checkpoint.
void train_half(Communicator& comm, Training& training, const fs::path& folder) {
  CheckpointWriter writer{
      {.folder = folder, .rank = comm.rank(), .ranks = comm.size(), .run = draw_run(comm)}};
  for (int step = 0; step < kHalf; ++step) training.step(step);
  ASSERT_TRUE(writer.save(saved_state(kHalf), training.objects()).ok());
  const Status written = writer.finish();
  ASSERT_TRUE(written.ok()) << written.message();
  comm.barrier();
}

void continue_training(Training& training) {
  for (int step = kHalf; step < kWhole; ++step) training.step(step);
  if (!training.parallel->flush().empty) training.optimizer->step();
}

// Loads and applies the newest checkpoint.
FoundCheckpoint resume(Communicator& comm, Training& training, const fs::path& folder) {
  FoundCheckpoint found = load_latest(folder, comm).value();
  if (!found.checkpoint) throw std::runtime_error{"no checkpoint"};
  const Status applied = found.checkpoint->apply(training.objects());
  EXPECT_TRUE(applied.ok()) << applied.message();
  return found;
}

TEST(Checkpoint, AResumedTrainingHasTheBitsOfOneThatWasNotInterrupted) {
  for (const auto& [name, options] : gradient_settings()) {
    for (const int ranks : {1, 3}) {
      for (const Optimizer kind : {Optimizer::Sgd, Optimizer::Lars, Optimizer::Rmsprop}) {
        if (kind == Optimizer::Rmsprop && options.sparse.sparsity > 0) continue;
        SCOPED_TRACE(testing::Message()
                     << name << ", " << ranks << " ranks, optimizer " << static_cast<int>(kind));
        const bench::TemporaryFolder folder;
        const fs::path path = folder.make("run");
        libtorch::run_torch_ranks(ranks, [&, &options = options](Communicator& comm) {
          Training uninterrupted{comm, options, kind};
          for (int step = 0; step < kHalf; ++step) uninterrupted.step(step);
          continue_training(uninterrupted);

          Training saved{comm, options, kind};
          train_half(comm, saved, path);
          continue_training(saved);
          EXPECT_TRUE(libtorch::same_bits(saved.everything(), uninterrupted.everything()))
              << "saved";

          Training resumed{comm, options, kind};
          const FoundCheckpoint found = resume(comm, resumed, path);
          EXPECT_EQ(found.checkpoint->ranks(), ranks);
          EXPECT_TRUE(found.refused.empty());
          continue_training(resumed);
          EXPECT_TRUE(libtorch::same_bits(resumed.everything(), uninterrupted.everything()))
              << "resumed";
        });
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Checkpoint, KeepsTheStateOfTheCaller) {
  const bench::TemporaryFolder folder;
  const fs::path path = folder.make("run");
  libtorch::run_torch_ranks(2, [&](Communicator& comm) {
    Training training{comm, {}};
    train_half(comm, training, path);
    const FoundCheckpoint found = load_latest(path, comm).value();
    ASSERT_TRUE(found.checkpoint);
    const TrainingState& state = found.checkpoint->state();
    const TrainingState expected = saved_state(kHalf);
    EXPECT_EQ(state.step, kHalf);
    EXPECT_EQ(state.seed, 42U);
    EXPECT_EQ(state.settings, expected.settings);
    EXPECT_EQ(state.notes, expected.notes);
    EXPECT_EQ(state.accuracy, 71.25);
    EXPECT_EQ(state.best_accuracy, 80);
    EXPECT_EQ(state.best_step, 3);
    EXPECT_NE(found.run, 0U);
  });
}

// The values that differ between ranks, of one rank, by name.
using Values = std::map<std::string, std::vector<double>>;

Values own_values(Training& training) {
  Values values;
  for (const auto& item : training.network->named_buffers()) {
    const torch::Tensor flat = item.value().to(torch::kDouble).flatten();
    values[item.key()] = {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }
  const auto residual = training.parallel->reducer().state().residual;
  values["residual"] = {residual.begin(), residual.end()};
  return values;
}

TEST(Checkpoint, AnotherNumberOfRanksResumesWithTheMeanOverTheOldRanks) {
  const GradientOptions options = gradient_settings().at("sparse, two buffers");
  for (const int ranks : {1, 2, 4}) {
    const bench::TemporaryFolder folder;
    const fs::path path = folder.make("run");
    std::vector<Values> before(3);
    libtorch::NamedTensors weights_before;
    libtorch::NamedTensors gradients_before;
    const auto gradients = [](Training& training) {
      libtorch::NamedTensors all;
      training.parallel->flush();
      for (const auto& item : training.network->named_parameters())
        all.emplace_back(item.key(), item.value().grad().clone());
      return all;
    };
    libtorch::run_torch_ranks(3, [&](Communicator& comm) {
      Training training{comm, options};
      train_half(comm, training, path);
      before[static_cast<std::size_t>(comm.rank())] = own_values(training);
      const libtorch::NamedTensors own = libtorch::weights(*training.network);
      const libtorch::NamedTensors in_flight = gradients(training);
      if (comm.rank() == 0) weights_before = own, gradients_before = in_flight;
    });
    libtorch::run_torch_ranks(ranks, [&](Communicator& comm) {
      Training training{comm, options};
      const FoundCheckpoint found = resume(comm, training, path);
      EXPECT_EQ(found.checkpoint->ranks(), 3);
      EXPECT_TRUE(libtorch::same_bits(libtorch::weights(*training.network), weights_before));
      int different = 0;
      for (const auto& [name, values] : own_values(training)) {
        ASSERT_EQ(values.size(), before[0][name].size());
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double mean = (before[0][name][i] + before[1][name][i] + before[2][name][i]) / 3;
          ASSERT_EQ(values[i], static_cast<float>(mean)) << name;
          different += before[0][name][i] != mean ? 1 : 0;
        }
      }
      EXPECT_GT(different, 100);
      EXPECT_TRUE(libtorch::same_bits(gradients(training), gradients_before))
          << "the mean in flight";
      for (int step = kHalf; step < kWhole; ++step) training.step(step);
    });
  }
}

TEST(Checkpoint, ADamagedCheckpointIsReportedAndAnOlderOneIsUsed) {
  const bench::TemporaryFolder folder;
  const fs::path path = folder.make("run");
  libtorch::run_torch_ranks(2, [&](Communicator& comm) {
    Training training{comm, {}};
    CheckpointWriter writer{{.folder = path, .rank = comm.rank(), .ranks = 2, .run = 5}};
    for (int step = 1; step <= 3; ++step) {
      training.step(step);
      ASSERT_TRUE(writer.save(saved_state(step), training.objects()).ok());
    }
    ASSERT_TRUE(writer.finish().ok());
    comm.barrier();
    if (comm.rank() == 0) {
      const fs::path torn = part_path(checkpoint_path(path, 3), 1);
      fs::resize_file(torn, fs::file_size(torn) / 2);
      fs::remove(part_path(checkpoint_path(path, 2), 0));
    }
    comm.barrier();
    const FoundCheckpoint found = load_latest(path, comm).value();
    ASSERT_TRUE(found.checkpoint);
    EXPECT_EQ(found.checkpoint->state().step, 1);
    if (comm.rank() != 0) return;
    ASSERT_EQ(found.refused.size(), 2U);
    EXPECT_NE(found.refused[0].find("step-00000003 is not used; rank-1: it is torn"),
              std::string::npos)
        << found.refused[0];
    EXPECT_NE(found.refused[1].find("step-00000002 is not used; rank-0: it is missing"),
              std::string::npos)
        << found.refused[1];
  });
}

TEST(Checkpoint, ACheckpointOfAnotherNetworkIsRefused) {
  const bench::TemporaryFolder folder;
  const fs::path path = folder.make("run");
  libtorch::run_torch_ranks(1, [&](Communicator& comm) {
    Training training{comm, {}};
    train_half(comm, training, path);
    const LoadedCheckpoint loaded = load_checkpoint(checkpoint_path(path, kHalf)).value();
    Training other{comm, {.theta = 17}};
    EXPECT_NE(loaded.apply(other.objects()).message().find("theta: it was saved with"),
              std::string::npos);
    torch::nn::Linear linear{3, 4};
    EXPECT_NE(loaded.apply_weights(*linear).message().find("the checkpoint has no 'weight'"),
              std::string::npos);
  });
}

TEST(Checkpoint, AnEmptyFolderHasNoCheckpoint) {
  const bench::TemporaryFolder folder;
  libtorch::run_torch_ranks(2, [&](Communicator& comm) {
    const FoundCheckpoint found = load_latest(fs::path{folder.make("run")} / "none", comm).value();
    EXPECT_FALSE(found.checkpoint);
    EXPECT_NE(found.run, 0U);
  });
}

TEST(Checkpoint, AFailedWriteIsReportedByTheNextSave) {
  libtorch::run_torch_ranks(1, [&](Communicator& comm) {
    Training training{comm, {}};
    training.step(0);
    CheckpointWriter writer{{.folder = "/proc/nothing"}};
    EXPECT_TRUE(writer.save(saved_state(1), training.objects()).ok());
    EXPECT_NE(writer.save(saved_state(2), training.objects()).message().find("/proc/nothing"),
              std::string::npos);
    EXPECT_FALSE(writer.finish().ok());
    EXPECT_TRUE(writer.finish().ok());
  });
}

TEST(Checkpoint, WeightsAreExportedForTorchLoad) {
  const bench::TemporaryFolder folder;
  const fs::path path = folder.make("run");
  libtorch::run_torch_ranks(2, [&](Communicator& comm) {
    Training training{comm, {}};
    train_half(comm, training, path);
    if (comm.rank() != 0) return;
    const LoadedCheckpoint loaded = load_checkpoint(checkpoint_path(path, kHalf)).value();
    libtorch::Network network{libtorch::Setting{.type = torch::kFloat, .normalise = true},
                              std::nullopt};
    ASSERT_TRUE(loaded.apply_weights(*network).ok());
    ASSERT_TRUE(export_weights(*network, path / "weights.pt").ok());

    libtorch::Network other{libtorch::Setting{.type = torch::kFloat, .normalise = true},
                            std::nullopt};
    torch::load(other, (path / "weights.pt").string());
    EXPECT_TRUE(
        libtorch::same_bits(libtorch::weights(*other), libtorch::weights(*training.network)));
    EXPECT_TRUE(torch::equal(other->named_buffers()["norm.running_mean"],
                             network->named_buffers()["norm.running_mean"]));
    EXPECT_FALSE(export_weights(*network, "/nowhere/weights.pt").ok());
  });
}

}  // namespace
}  // namespace sluice::train
