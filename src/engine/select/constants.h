// constants.h - the cost of messages: the constants that all ranks of a job agree on.
//
// The constants of one node are measured once by at most kMostMeasuredRanks ranks, and kept as a
// cluster file (docs/clusters.md) in the user's cache folder. More ranks use the same figures, with
// the closed forms for their number. If the file cannot be read or written, it is measured again.
// The constants between nodes come from the cluster file that SLUICE_TOPOLOGY names at rank 0.
// Without one they are measured whenever a job starts, in some tenths of a second, because every
// job may run on other hosts (network_constants.cc).
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "bootstrap/environment.h"
#include "engine/select/choices.h"
#include "sluice/analysis/cost.h"
#include "sluice/communicator.h"
#include "transport/wait.h"

namespace sluice::engine {

// The choices by rank 0's constants and the order of the nodes. Every rank must call it. Throws the
// errors of collectives, and Error when a file or an environment variable is wrong.
Choices agreed_choices(Communicator& communicator, const transport::Group& group,
                       const bootstrap::Environment& environment);

// The user's cache folder of Sluice; empty when there is none.
std::filesystem::path cache_folder(const bootstrap::Environment& environment);

// The most ranks of a node that are timed together. So a measurement takes the same time for any
// number of ranks.
inline constexpr int kMostMeasuredRanks = 8;

// The file for a number of ranks on this machine; empty when there is no cache folder.
std::filesystem::path constants_path(const bootstrap::Environment& environment, int ranks);

// The constants of that file, for this number of ranks. nullopt: the file is missing, wrong or
// incomplete.
std::optional<CostConstants> kept_constants(const bootstrap::Environment& environment, int ranks);

// The constants for `ranks` ranks, from those of min(ranks, kMostMeasuredRanks). Ranks that share a
// core take turns, so each of their messages takes longer in proportion.
CostConstants extrapolated(CostConstants measured, int ranks, int cores);

// nullopt: the file is missing, wrong or incomplete.
std::optional<CostConstants> load_constants(const std::filesystem::path& path);
// Does nothing where the file cannot be written.
void save_constants(const std::filesystem::path& path, const CostConstants& constants, int ranks);

// The constants of the built-in cluster shared-memory.
CostConstants typical_constants();

// The algorithms that are measured, and from which ranks of one node choose.
std::span<const std::string_view> measured_algorithms();

// Times a ring with a buffer that is long enough to show the bandwidth, and a short all_reduce by
// every algorithm. Every rank must call it; all return rank 0's figures.
CostConstants measure_network(Communicator& communicator, const Topology& topology);

// The time of one all_reduce, as the mean of `repeats` after a barrier. Every rank must call it.
inline double seconds_of(Communicator& communicator, std::span<float> data,
                         const CollectiveOptions& options, int repeats) {
  communicator.barrier();
  const auto begin = transport::Clock::now();
  for (int i = 0; i < repeats; ++i) communicator.all_reduce(data, options).wait();
  return std::chrono::duration<double>(transport::Clock::now() - begin).count() / repeats;
}

}  // namespace sluice::engine
