// calibrate.h - constants solved from published figures, within what is plausible.
//
// The values in use stand in the cluster files (and in straggler.h), so that whoever simulates
// something else has them too; here they are solved anew. A test holds the files to it.
#pragma once

#include <vector>

#include "cli/simulate/published.h"
#include "sluice/status.h"

namespace sluice::cli {

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
