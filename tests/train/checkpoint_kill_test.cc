// If a process is killed while it writes checkpoints, a valid checkpoint is left.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/random.h"
#include "bench/allreduce/temporary_folder.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/train/checkpoint_training.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace sluice::train {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 2;
constexpr int kKills = 50;

// Sets all weights to the number of the step.
void set_weights(CheckpointTraining& training, std::int64_t step) {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& each : training.network->parameters()) each.fill_(static_cast<double>(step));
}

// Resumes, then writes checkpoints until it is killed. Reports every step whose checkpoint is on
// the disk at both ranks.
[[noreturn]] void write_without_end(const fs::path& folder, int reported) {
  libtorch::run_torch_ranks(kRanks, [&](Communicator& comm) {
    CheckpointTraining training{comm, {.double_buffering = true}};
    const FoundCheckpoint found = load_latest(folder, comm).value();
    std::int64_t step = 0;
    if (found.checkpoint) {
      step = found.checkpoint->state().step;
      if (!found.checkpoint->apply(training.objects()).ok()) _exit(3);
    }
    CheckpointWriter writer{
        {.folder = folder, .rank = comm.rank(), .ranks = kRanks, .run = found.run}};
    while (true) {
      set_weights(training, ++step);
      if (!writer.save({.step = step}, training.objects()).ok()) _exit(4);
      // Every third checkpoint is still being written when the next step begins.
      if (step % 3 == 0) continue;
      if (!writer.finish().ok()) _exit(5);
      comm.barrier();
      if (comm.rank() == 0 && write(reported, &step, sizeof step) != sizeof step) _exit(6);
    }
  });
  _exit(7);
}

TEST(CheckpointKill, AValidCheckpointIsAlwaysLeft) {
  at::set_num_threads(1);  // a forked process does not have the threads of a pool
  const bench::TemporaryFolder temporary;
  const fs::path folder = temporary.make("checkpoints");
  base::Random random{static_cast<std::uint64_t>(getpid())};
  std::int64_t last = 0;
  int refused = 0;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(pipe_ends[0]);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(60);
      // After a fork libtorch creates its thread pool again. Two threads must not do this at once.
      at::set_num_threads(1);
      write_without_end(folder, pipe_ends[1]);
    }
    close(pipe_ends[1]);
    // Wait until the child has written a checkpoint.
    std::int64_t reported = 0;
    ASSERT_EQ(read(pipe_ends[0], &reported, sizeof reported),
              static_cast<ssize_t>(sizeof reported));
    std::this_thread::sleep_for(std::chrono::microseconds{random.below(20'000)});
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status))
        << "the child ended by itself, with status " << WEXITSTATUS(status);
    do last = std::max(last, reported);
    while (read(pipe_ends[0], &reported, sizeof reported) == static_cast<ssize_t>(sizeof reported));
    close(pipe_ends[0]);

    const NewestCheckpoint newest = newest_checkpoint(folder);
    ASSERT_TRUE(newest.path);
    ASSERT_GE(newest.step, last) << "a checkpoint that was on the disk is gone";
    last = newest.step;
    refused += newest.refused.empty() ? 0 : 1;
    const Result<LoadedCheckpoint> loaded = load_checkpoint(*newest.path);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    libtorch::Network network{libtorch::Setting{.type = torch::kFloat, .normalise = true},
                              std::nullopt};
    ASSERT_TRUE(loaded.value().apply_weights(*network).ok());
    for (const auto& [name, tensor] : libtorch::weights(*network))
      ASSERT_TRUE((tensor == static_cast<double>(newest.step)).all().item<bool>()) << name;
  }
  RecordProperty("interrupted", refused);
  EXPECT_GT(refused, 0) << "the child was never killed while writing";
}

}  // namespace
}  // namespace sluice::train
