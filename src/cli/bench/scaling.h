// scaling.h - how training scales with ranks: the table of `sluice bench train`, and plots.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace sluice::cli {

struct ScalingRow {
  int ranks = 0;
  int batch = 0;  // per rank
  double images_per_s = 0;
  double efficiency = 0;  // t / (t0 n), t in images/s
};

// The rows to measure. Weak scaling keeps the batch per rank; strong scaling keeps the global
// batch, which is `batch` per rank for the fewest ranks. Throws Error if a global batch is not a
// multiple of the ranks.
std::vector<ScalingRow> scaling_rows(const std::vector<int>& ranks, const std::vector<int>& batches,
                                     bool strong);

// Fills in the efficiencies, relative to the fewest ranks with the same batch per rank (weak) or
// the same global batch (strong).
void set_efficiencies(std::vector<ScalingRow>& rows, bool strong);

std::string scaling_text(const std::vector<ScalingRow>& rows);
nlohmann::ordered_json scaling_json(const std::vector<ScalingRow>& rows);

// Adds `train` to `sluice bench`.
void add_bench_train(CommandLine& bench, int& exit_status);

struct ScalingPoint {
  int ranks = 0;
  double efficiency = 0;
  double images_per_s = 0;
};

// REQUIRES: at least one point; ranks ascend.
struct ScalingCurve {
  std::string title;
  std::vector<ScalingPoint> points;
};

std::string plot_text(const ScalingCurve& curve);
std::string plot_svg(const ScalingCurve& curve);

}  // namespace sluice::cli
