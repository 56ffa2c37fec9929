// reproduce.h - published trainings against the simulator.
#pragma once

#include <vector>

#include "cli/simulate/published.h"
#include "simulate/training.h"

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

}  // namespace sluice::cli
