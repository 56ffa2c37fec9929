// training_display.h - what rank 0 shows while it trains: a live bar on a terminal, lines
// elsewhere.
//
// Evaluations, checkpoints' troubles and notes are lines that stay. Between them a terminal shows a
// bar, drawn anew at most ten times a second; anything else gets a line every ten seconds.
// Thread-safety: none; the trainer tells its events on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

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

// Where it is shown, and the time: tests have their own.
struct DisplayPlace {
  std::function<void(std::string_view)> write;
  std::function<int()> width;  // columns of the terminal; 0: it is none
  std::function<std::chrono::steady_clock::time_point()> now;
  bool colour = false;
};

// Standard error, with colours unless NO_COLOR is set; a terminal that is "dumb" counts as none.
DisplayPlace standard_error_display();

class TrainingDisplay : public train::TrainingEvents {
 public:
  explicit TrainingDisplay(DisplayPlace place) : place_{std::move(place)} {}
  ~TrainingDisplay() override { clear(); }
  TrainingDisplay(const TrainingDisplay&) = delete;
  TrainingDisplay& operator=(const TrainingDisplay&) = delete;

  void started(const train::StartUp& start_up) override;
  void stepped(const train::StepReport& step) override;
  void evaluating(std::int64_t done, std::int64_t samples) override;
  void evaluated(const train::EvaluationReport& evaluation) override;
  void note(const std::string& sentence) override;

  // Takes the bar away, for whatever comes next.
  void clear();

 private:
  void draw();
  void line(std::string_view text);

  DisplayPlace place_;
  BarState state_;
  bool drawn_ = false;  // a bar is on the terminal
  std::chrono::steady_clock::time_point last_;
};

}  // namespace sluice::cli
