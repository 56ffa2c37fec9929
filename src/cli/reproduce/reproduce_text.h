// reproduce_text.h - published figures beside simulated ones, as tables.
#pragma once

#include <string>
#include <vector>

#include "cli/reproduce/reproduction.h"

namespace sluice::cli {

// For a terminal.
std::string reproduction_text(const std::vector<Reproduction>& all);
std::string calibration_text(const std::vector<Calibration>& all);

// The page docs/reproduction.md. Throws Error.
std::string reproduction_page(const std::vector<Reproduction>& all,
                              const std::vector<CrossChecked>& checks);

}  // namespace sluice::cli
