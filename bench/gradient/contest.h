// contest.h - ways to train that take turns in the same processes, over links of a set rate.
//
// The rate is set so that the ratio asked for holds on this machine, round by round. After the last
// turn every rank's weights must be the same bits, and those of all f32 ways that are not a step
// behind the same to rounding.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench/gradient/bars.h"
#include "bench/gradient/training.h"
#include "bench/gradient/ways.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {

constexpr int kUnlimited = 20'000;  // Mbit/s: no transfer takes longer than a few ms

struct ContestOptions {
  Workload workload;
  double ratio = 0.45;  // of communication to computation
  double plain = 0;     // instead: of a plain step to an unlimited one
  int rounds = 3;
  int steps = 2;      // of a slice
  int fastest = 100;  // Mbit/s
};

// What rank 0 tells the process that owns the links, and what it found out in the end. Lies in
// memory that the processes share.
struct Told {
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

// At every rank, each a host of its own. Where the gate is passed, the links get `told.mbit`, which
// rank 0 has set. Returns what was wrong, or "".
std::string run_contest(const ContestOptions& options, const std::vector<Way>& ways,
                        Communicator& comm, const box::Gate& gate, Told& told);

}  // namespace sluice::bench
