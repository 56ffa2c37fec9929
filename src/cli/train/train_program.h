// train_program.h - sluice-train, the program of one rank: its path, its cores and its threads.
//
// libtorch takes most of a second to load, so the command does without it: each rank is a process
// of sluice-train, which is installed beside sluice.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bootstrap/environment.h"
#include "bootstrap/placement.h"

namespace sluice::cli {

// Its path. Throws Error where this build has none.
std::string train_program();

// This process becomes a rank: the program with these arguments. Throws Error, or does not return.
[[noreturn]] void become_train_program(std::vector<std::string> arguments);

struct RankThreads {
  int compute = 1;
  int loader = 1;
};

// Images that must be decoded take threads of their own out of the rank's; those in memory none.
RankThreads share_threads(int threads, bool decodes);

// Pins this process to its share of the node's cores and sets OMP_NUM_THREADS, as `sluice launch`
// does it: not where the launcher has bound it already, nor a number that the user has set. Before
// libraries that start threads are loaded.
void take_share_of_cores(const bootstrap::Placement& placement,
                         const bootstrap::Environment& environment);

// As that or `sluice launch` left them.
int threads_of_rank(const bootstrap::Environment& environment);

}  // namespace sluice::cli
