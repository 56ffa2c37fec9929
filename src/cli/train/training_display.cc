#include "cli/train/training_display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "base/format.h"
#include "cli/terminal.h"
#include "cli/train/figures.h"

namespace sluice::cli {
namespace {

constexpr auto kBetweenBars = std::chrono::milliseconds{100};
constexpr auto kBetweenLines = std::chrono::seconds{10};

int columns_of_terminal() {
  constexpr int kUnknown = 80;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknown;
  return size.ws_col;
}

}  // namespace

DisplayPlace standard_error_display() {
  const bool terminal = is_terminal(STDERR_FILENO);
  return {.write = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); },
          .width = [terminal] { return terminal ? columns_of_terminal() : 0; },
          .now = [] { return std::chrono::steady_clock::now(); },
          .colour = has_colours(STDERR_FILENO)};
}

void TrainingDisplay::started(const train::StartUp& start_up) {
  state_.step.steps = start_up.steps;
  state_.step.step = start_up.first_step;
  state_.step.epochs = start_up.epochs;
  if (start_up.first_step > 0)
    line(base::format("goes on after step {}", with_commas(start_up.first_step)));
  line(base::format("{}; {} parameters, {} {}, global batch {}; first step after {}", start_up.data,
                    with_commas(start_up.parameters), start_up.ranks,
                    start_up.ranks == 1 ? "rank" : "ranks", with_commas(start_up.global_batch),
                    span_text(start_up.total_s)));
  last_ = place_.now();
}

void TrainingDisplay::stepped(const train::StepReport& step) {
  state_.step = step;
  state_.evaluating.reset();
  draw();
}

void TrainingDisplay::evaluating(std::int64_t done, std::int64_t samples) {
  state_.evaluating = samples > 0 ? static_cast<double>(done) / static_cast<double>(samples) : 1;
  if (place_.width() > 0) draw();
}

void TrainingDisplay::evaluated(const train::EvaluationReport& evaluation) {
  state_.evaluating.reset();
  state_.accuracy = evaluation.accuracy;
  line(evaluation_line(evaluation, state_.step));
  last_ = place_.now();
}

void TrainingDisplay::note(const std::string& sentence) {
  line(base::format("note: {}", sentence));
}

void TrainingDisplay::clear() {
  if (drawn_) place_.write(kClearLine);
  drawn_ = false;
}

void TrainingDisplay::draw() {
  const int width = place_.width();
  const auto now = place_.now();
  if (now - last_ < (width > 0 ? std::chrono::nanoseconds{kBetweenBars} : kBetweenLines)) return;
  last_ = now;
  if (width == 0) return line(progress_line(state_));
  place_.write(base::format("{}{}", kClearLine, bar_line(state_, {width, place_.colour})));
  drawn_ = true;
}

void TrainingDisplay::line(std::string_view text) {
  clear();
  place_.write(base::format("{}\n", text));
}

}  // namespace sluice::cli
