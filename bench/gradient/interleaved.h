// interleaved.h - ways to train that take turns in the same processes, over links of a chosen rate.
//
// Each round sets the link rate so that the requested ratio of communication to computation holds
// on this machine. In the end all ranks must have the same bits in their weights, and all exact
// ways must have the same weights up to rounding.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench/gradient/training.h"
#include "bench/gradient/ways.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {

constexpr int kUnlimited = 20'000;  // Mbit/s: no transfer takes longer than a few ms

struct InterleavedOptions {
  Workload workload;
  double ratio = 0.45;  // of communication to computation
  double plain = 0;     // instead: ratio of a plain step to an unlimited step; 0: use `ratio`
  int rounds = 3;
  int steps = 2;      // per slice
  int fastest = 100;  // Mbit/s, the fastest link allowed
};

// Memory that all processes share: the link rate that rank 0 asks for, and its results.
struct SharedState {
  int mbit = kUnlimited;
  double transfer_s = 0;
  double transfer_of_alone = 0;
  double bound_s = 0;
  double strict_bound_s = 0;
  double most_stolen = 0;
  double gradient_bytes = 0;
  double limited_mbit = 0;
  std::array<StepTime, 16> steps{};
};

// Runs on every rank, each on a host of its own. At each gate the owner of the links sets them to
// `shared.mbit`. Returns an error, or "".
std::string run_interleaved(const InterleavedOptions& options, const std::vector<Way>& ways,
                            Communicator& comm, const box::Gate& gate, SharedState& shared);

}  // namespace sluice::bench
