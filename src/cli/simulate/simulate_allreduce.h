// simulate_allreduce.h - `sluice simulate --allreduce`: a collective alone, on ever more ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace sluice::cli
