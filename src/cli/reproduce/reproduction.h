// reproduction.h - published trainings, and the simulator's results for them.
//
// published/trainings.toml has the trainings and their figures. A figure is calibrated if a
// constant was solved from it: it agrees by construction and proves nothing. A predicted figure
// takes all its constants from other rows or from the cluster's file. Every figure is one or the
// other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/training.h"
#include "sluice/status.h"

namespace sluice::cli {

enum class Metric : std::uint8_t { Seconds, ImagesPerSecond, Speedup, Efficiency };
std::string_view name(Metric metric);  // "time_to_train_s", ...

enum class Constant : std::uint8_t { None, Speed, StartUp, LinkEfficiency, Spread };

// The constant that was solved from a figure. `least` and `most` bound its plausible values, which
// we estimated; both are 0 if nothing is known.
struct SolvedConstant {
  Constant kind = Constant::None;
  std::string name;  // "P100 under Chainer, f32"
  double least = 0;
  double most = 0;
};

struct PublishedFigure {
  std::string row;
  Metric metric = Metric::Seconds;
  double published = 0;
  std::string source;     // tag of the published figure: "[R] abstract"
  SolvedConstant solved;  // of a calibrated figure
  std::string from;       // of a predicted figure: the source of its constants
  int freedom = 0;        // number of constants chosen to fit this figure
  double bar = 0;         // largest accepted error; 0: nothing is claimed
  int base_ranks = 1;     // an efficiency is relative to this many ranks
  bool calibrated() const { return solved.kind != Constant::None; }
};

struct PublishedRun {
  std::string row;  // name in docs/reproduction.md
  std::string cluster;
  int ranks = 0;
  std::string recipe;
  std::string settings;  // of the recipe, "key=value" separated by blanks
  std::string framework;
  int grid_rows = 0;  // rows of a torus; 0: the nodes are the rows
};

// A run with another framework's speed. The result must be wrong by about the expected error.
struct CrossCheck {
  std::string row;
  std::string framework;
  double published = 0;
  double expected_error = 0;
};

// The plausible values of a constant of a cluster's links.
struct LinkConstant {
  std::string cluster;
  std::string_view name;  // "efficiency of the links between nodes, %"
  double least = 0;
  double most = 0;
  double (*value)(const cluster::Cluster& cluster) = nullptr;
};

// The contents of published/trainings.toml, in order of the file.
struct PublishedTrainings {
  std::vector<PublishedRun> runs;
  std::vector<PublishedFigure> figures;
  std::vector<CrossCheck> cross_checks;
  std::vector<LinkConstant> links;

  const PublishedRun& run_of(std::string_view row) const;  // REQUIRES: the row exists
};

// `source` is the name of the text in messages. An error names the line.
Result<PublishedTrainings> parse_published(std::string_view toml, const std::string& source);
// The built-in file. Throws Error.
const PublishedTrainings& published_trainings();

// The input of the simulator for a run. Its recipe has the run's settings.
Result<simulate::TrainingInput> input_of(const PublishedRun& run);
double figure_of(Metric metric, const simulate::TrainingTime& time);

struct Reproduction {
  PublishedFigure figure;
  PublishedRun run;
  double simulated = 0;
  double error = 0;     // relative to the published figure
  double constant = 0;  // of a calibrated figure: the value in use
};

// All figures, in order of the file.
Result<std::vector<Reproduction>> reproduce();

struct CrossChecked {
  CrossCheck check;
  double simulated = 0;
  double error = 0;
};
Result<std::vector<CrossChecked>> cross_checks();

struct Calibration {
  PublishedFigure figure;
  double in_use = 0;
  double solved = 0;
  bool at_edge = false;  // no plausible value gives the figure, so this is the nearest one
};

// Solves the constant of every calibrated figure again. All other constants keep the values in use.
Result<std::vector<Calibration>> calibrate();

// The value in use: images/s of the first point of a speed's curve, seconds, or a fraction of a
// link's rate. REQUIRES: the figure is calibrated.
Result<double> constant_in_use(const PublishedFigure& figure);

}  // namespace sluice::cli
