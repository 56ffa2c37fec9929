// train_job.h - the options of `sluice train`, the training they describe, and the program of a
// rank.
//
// The command and the ranks that it starts read the same options. A rank that mpirun, srun or
// torchrun starts therefore behaves like one of our own. Invalid options throw Error.
//
// libtorch takes most of a second to load, so the command does not link it: each rank is a process
// of the program sluice-train, which is installed beside sluice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/environment.h"
#include "bootstrap/placement.h"
#include "cli/command_line.h"
#include "recipe/recipe.h"

namespace sluice::cli {

struct TrainOptions {
  std::string recipe;  // empty: the recipe of the data, or of the resumed run
  std::string data;    // empty: the data of the recipe, or of the resumed run
  std::string ranks;
  std::string device = "cpu";
  std::string run;
  bool resume = false;
  std::string init;
  std::string evaluate;
  std::string target;
  std::string max_restarts = "0";
  std::string steps;
  std::vector<std::string> set;
  bool dry_run = false;
  bool json = false;
  bool keep_nothing = false;  // write no run folder; for benchmarks
};

void add_train_options(CommandLine& command, TrainOptions& options);

// The arguments for a rank: all options except those that only the command uses, such as --ranks.
std::vector<std::string> arguments_of_rank(const TrainOptions& options);

// The options, checked, with the recipe loaded.
struct TrainJob {
  recipe::Recipe recipe;        // default with --evaluate: the checkpoint has its own
  std::string data;             // empty: neither the options nor the recipe name any
  double target = 0;            // percent; 0: the recipe's
  std::int64_t step_limit = 0;  // 0: no limit
  int max_restarts = 0;
};
TrainJob job_of(const TrainOptions& options);

// Throws Error when the job has no data to train on.
void require_data(const TrainJob& job);

// --ranks, from 1 to `most`. Default: one rank per core of this machine, at most kMostDefaultRanks.
inline constexpr int kMostDefaultRanks = 8;
int ranks_of(const TrainOptions& options, int most);

// The path of sluice-train. Throws Error when this build has none.
std::string train_program();

// Replaces this process by sluice-train. Throws Error, or does not return.
[[noreturn]] void become_train_program(std::vector<std::string> arguments);

// How a rank divides its threads.
struct RankThreads {
  int compute = 1;
  int loader = 1;
};

// Reserves loader threads when images must be decoded; images in memory need none.
RankThreads share_threads(int threads, bool decodes);

// Pins this process to its share of the node's cores and sets OMP_NUM_THREADS, like `sluice
// launch`. Keeps the binding of a launcher that has bound its ranks, and a number that the user has
// set. Call it before loading libraries that start threads.
void take_share_of_cores(const bootstrap::Placement& placement,
                         const bootstrap::Environment& environment);

// OMP_NUM_THREADS; 1 when it is not set to one number.
int threads_of_rank(const bootstrap::Environment& environment);

}  // namespace sluice::cli
