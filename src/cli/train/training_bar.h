// training_bar.h - how far a training is, as one line. Pure functions of what the trainer tells.
#pragma once

#include <optional>
#include <string>

#include "train/loop/trainer.h"

namespace sluice::cli {

struct BarLook {
  int width = 80;  // columns of the terminal
  bool colour = true;
};

struct BarState {
  train::StepReport step;
  std::optional<double> accuracy;    // of the last evaluation, percent
  std::optional<double> evaluating;  // how far the one that runs is, 0 to 1
};

// At most width - 1 columns, so that no terminal wraps it, and no line's end. Where they do not all
// fit, the parts that matter least are left out; the bar itself takes what is left.
std::string bar_line(const BarState& state, const BarLook& look);

// The same for a file or a pipe: all parts, no bar.
std::string progress_line(const BarState& state);

// An evaluation: what it came to and how far training was.
std::string evaluation_line(const train::EvaluationReport& evaluation,
                            const train::StepReport& step);

}  // namespace sluice::cli
