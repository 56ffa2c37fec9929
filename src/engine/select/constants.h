// constants.h - what messages cost on this machine: measured once for a number of ranks, and kept
// in the user's cache folder.
//
// The file is a cluster file (docs/clusters.md). Whoever cannot read or write it measures again, or
// goes by the built-in cluster shared-memory.
//
// What messages between nodes cost is measured as a job starts (network_constants.cc).
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bootstrap/environment.h"
#include "sluice/analysis/cost.h"
#include "sluice/communicator.h"
#include "transport/wait.h"

namespace sluice::engine {

// Where they are kept; empty when there is no folder for it.
std::filesystem::path constants_path(const bootstrap::Environment& environment, int ranks);

std::optional<CostConstants> load_constants(const std::filesystem::path& path);
void save_constants(const std::filesystem::path& path, const CostConstants& constants, int ranks);

// Typical ones.
CostConstants typical_constants();

// The algorithms that are measured, and that one node chooses from.
std::span<const std::string_view> measured_algorithms();

// Times every measured algorithm, some milliseconds each. Every rank must call it; each returns its
// own figures.
CostConstants measure_constants(Communicator& communicator);

// False where the machine was too busy to tell: not worth keeping.
bool plausible(const CostConstants& constants);

// Rank 0's, at every rank.
CostConstants hand_out(Communicator& communicator, const CostConstants& constants);

// Of one, when `repeats` follow each other after a barrier. Every rank must call it.
inline double seconds_of(Communicator& communicator, float* data, std::size_t count,
                         const CollectiveOptions& options, int repeats) {
  communicator.barrier();
  const auto begin = transport::Clock::now();
  for (int i = 0; i < repeats; ++i) communicator.all_reduce(data, count, options).wait();
  return std::chrono::duration<double>(transport::Clock::now() - begin).count() / repeats;
}

// Times a ring long enough to tell the bandwidth, and one short all-reduce of every algorithm.
// Every rank must call it; all return rank 0's figures.
CostConstants measure_network(Communicator& communicator, const Topology& topology);

}  // namespace sluice::engine
