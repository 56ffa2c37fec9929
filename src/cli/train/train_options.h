// train_options.h - what `sluice train` is told, and what that comes to.
//
// The command and the ranks it starts read the same options, so that a rank under mpirun, srun or
// torchrun, started by hand, is no different. What cannot be is an Error.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace sluice::cli {

struct TrainOptions {
  std::string recipe;  // empty: the data's own, or the run's that is resumed
  std::string data;    // empty: the recipe's own, or the run's that is resumed
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
  bool keep_nothing = false;  // no run folder: for measurements
};

void add_train_options(CLI::App& command, TrainOptions& options);

// Those of a rank: what the command itself is for (ranks, restarts) left out.
std::vector<std::string> arguments_of_rank(const TrainOptions& options);

// The options, looked up and checked.
struct TrainJob {
  recipe::Recipe recipe;        // of --evaluate: none, the checkpoint has its own
  std::string data;             // empty: none was given and the recipe has none of its own
  double target = 0;            // percent; 0: the recipe's
  std::int64_t step_limit = 0;  // 0: none
  int max_restarts = 0;
};
TrainJob job_of(const TrainOptions& options);
// Throws where a training of it would have nothing to learn from.
void require_data(const TrainJob& job);

// --ranks, from 1 to `most`; none given: as many as this machine's cores, kMostDefaultRanks at
// most.
inline constexpr int kMostDefaultRanks = 8;
int ranks_of(const TrainOptions& options, int most);

}  // namespace sluice::cli
