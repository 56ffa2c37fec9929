// reproduce.h - published trainings against the simulator.
#pragma once

#include <vector>

#include "cli/reproduce/published.h"
#include "simulate/training.h"
#include "sluice/status.h"

namespace sluice::cli {

// The run as a question, its recipe with the run's settings.
Result<simulate::TrainingQuestion> question_of(const PublishedRun& run);
double figure_of(Metric metric, const simulate::TrainingTime& time);

struct Reproduction {
  PublishedFigure figure;
  PublishedRun run;
  double simulated = 0;
  double error = 0;     // of the published figure
  double constant = 0;  // of a calibrated one: the value in use
};

// Every figure, in the order of published_figures().
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
  bool at_edge = false;  // no plausible value gives the figure: the nearest end is taken
};

// Of every calibrated figure, with all other constants as they are in use.
Result<std::vector<Calibration>> calibrate();

// Images/s of the first point of a speed's curve; seconds; part of a link's rate.
// REQUIRES: the figure is calibrated.
Result<double> constant_in_use(const PublishedFigure& figure);

}  // namespace sluice::cli
