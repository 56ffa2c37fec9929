// bench_train.h - `sluice bench train`: how training scales with ranks, and with the batch.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace sluice::cli {

struct ScalingRow {
  int ranks = 0;
  int batch = 0;  // a rank's
  double images_per_s = 0;
  double efficiency = 0;  // e = t / (t0 n)
};

// What is to be measured: weak scaling keeps a rank's batch, strong scaling the global one, which
// is `batch` for the fewest ranks. Throws Error where a global batch is no multiple of the ranks.
std::vector<ScalingRow> scaling_rows(const std::vector<int>& ranks, const std::vector<int>& batches,
                                     bool strong);

// Fills in the efficiencies: against the fewest ranks with the same batch (weak), or the same
// global batch (strong).
void set_efficiencies(std::vector<ScalingRow>& rows, bool strong);

std::string scaling_text(const std::vector<ScalingRow>& rows);
nlohmann::ordered_json scaling_json(const std::vector<ScalingRow>& rows);

// Adds `train` to `sluice bench`.
void add_bench_train(CLI::App& bench, int& exit_status);

struct ScalingPoint {
  int ranks = 0;
  double efficiency = 0;
  double images_per_s = 0;
};

// REQUIRES: points, of rising ranks.
struct ScalingCurve {
  std::string title;
  std::vector<ScalingPoint> points;
};

std::string plot_text(const ScalingCurve& curve);
std::string plot_svg(const ScalingCurve& curve);

}  // namespace sluice::cli
