// constants.h - what messages cost on this machine: measured once for a number of ranks, and kept
// in the user's cache folder.
//
// The file is a cluster file (docs/clusters.md). Whoever cannot read or write it measures again, or
// goes by the built-in cluster shared-memory.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bootstrap/environment.h"
#include "sluice/communicator.h"
#include "sluice/cost.h"

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

}  // namespace sluice::engine
