// training_display.h - the progress that rank 0 shows: a live bar on a terminal, else lines.
//
// Evaluations and notes are permanent lines. Between them a terminal shows a bar, redrawn at most
// ten times a second; a file or pipe gets a line every ten seconds.
// Thread-safety: none; the trainer reports all events on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "train/loop/trainer.h"

namespace sluice::cli {

struct BarStyle {
  int width = 80;  // columns of the terminal
  bool colour = true;
};

struct BarState {
  train::StepReport step;
  std::optional<double> accuracy;    // of the last evaluation, percent
  std::optional<double> evaluating;  // progress of the running evaluation, 0 to 1
};

// At most width - 1 columns, so that no terminal wraps it, without a line break. Drops the least
// important parts if they do not all fit; the bar takes the remaining columns.
std::string bar_line(const BarState& state, const BarStyle& style);

// The line for a file or pipe: all parts, no bar.
std::string progress_line(const BarState& state);

// The result of an evaluation and the progress of the training.
std::string evaluation_line(const train::EvaluationReport& evaluation,
                            const train::StepReport& step);

// The terminal and the clock; tests have their own.
struct DisplayOutput {
  std::function<void(std::string_view)> write;
  std::function<int()> width;  // columns of the terminal; 0: not a terminal
  std::function<std::chrono::steady_clock::time_point()> now;
  bool colour = false;
};

// Standard error, with colours unless NO_COLOR is set; TERM=dumb counts as no terminal.
DisplayOutput standard_error_display();

class TrainingDisplay : public train::TrainingEvents {
 public:
  explicit TrainingDisplay(DisplayOutput output) : output_{std::move(output)} {}
  ~TrainingDisplay() override { clear(); }
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  void started(const train::StartUp& start_up) override;
  void stepped(const train::StepReport& step) override;
  void evaluating(std::int64_t done, std::int64_t samples) override;
  void evaluated(const train::EvaluationReport& evaluation) override;
  void note(const std::string& sentence) override;

  // Erases the bar.
  void clear();

 private:
  void draw();
  void line(std::string_view text);

  DisplayOutput output_;
  BarState state_;
  bool drawn_ = false;  // a bar is on the terminal
  std::chrono::steady_clock::time_point last_;
};

}  // namespace sluice::cli
