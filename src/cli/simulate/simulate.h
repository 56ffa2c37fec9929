// simulate_allreduce.h - `sluice simulate --allreduce`: a collective alone, on ever more ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/training.h"
#include "simulate/what_if.h"

namespace sluice::cli {

struct AllReduceQuestion {
  simulate::WhatIf world;
  std::vector<int> ranks;
  std::int64_t bytes = 0;
  std::string algorithm;  // empty: what the engine would choose; "all": each of them
  int segments = 0;       // 0: what the engine would choose
  bool json = false;
};

// Prints a table or a JSON document. Throws Error.
void simulate_all_reduce(const AllReduceQuestion& question);

struct TrainingSweep {
  simulate::TrainingQuestion question;  // but for its ranks
  std::vector<int> ranks;               // rising
  bool strong = false;                  // the global batch stays, not a rank's
  std::string plot;                     // files to write; empty: none
  std::string trace;                    // of a step on the most ranks
  bool json = false;
};

// Prints a table or a JSON document, one row for each number of ranks. Throws Error.
void simulate_trainings(TrainingSweep sweep);

}  // namespace sluice::cli
