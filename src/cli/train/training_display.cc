#include "cli/train/training_display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/format.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kPlain = "\033[0m";

// A part of the line; the part with the largest `spare` is dropped first.
struct Part {
  std::string text;
  int spare = 0;
};

std::string epoch_text(const train::StepReport& step) {
  const auto epochs = static_cast<std::int64_t>(std::ceil(step.epochs));
  const auto passed = static_cast<std::int64_t>(std::floor(step.epoch));
  return base::format("epoch {}/{}",
                      std::clamp<std::int64_t>(passed + 1, 1, std::max(epochs, std::int64_t{1})),
                      epochs);
}

std::string step_text(const train::StepReport& step) {
  return base::format("step {}/{}", with_commas(step.step), with_commas(step.steps));
}

std::string rate_text(const train::StepReport& step) {
  return base::format("rate {:.3g}", step.rate);
}

std::string wait_text(const train::StepReport& step) {
  return base::format("network {:.1f}%", 100 * step.exposed_comm_fraction);
}

double part_done(const train::StepReport& step) {
  if (step.steps <= 0) return 0;
  return std::clamp(static_cast<double>(step.step) / static_cast<double>(step.steps), 0.0, 1.0);
}

std::vector<Part> parts_after_bar(const BarState& state) {
  const train::StepReport& step = state.step;
  std::vector<Part> parts{{base::format("{:.0f}%", std::floor(100 * part_done(step))), 1},
                          {step_text(step), 6}};
  if (state.evaluating) {
    parts.push_back({base::format("evaluating {:.0f}%", 100 * *state.evaluating), 2});
  } else {
    parts.push_back({base::format("{} images/s", speed_text(step.images_per_s)), 2});
  }
  parts.push_back({base::format("loss {:.4f}", step.loss), 3});
  if (state.accuracy)
    parts.push_back({base::format("accuracy {}", percent_text(*state.accuracy)), 4});
  parts.push_back({rate_text(step), 7});
  parts.push_back({wait_text(step), 8});
  parts.push_back({base::format("{} left", span_text(step.left_s)), 5});
  return parts;
}

std::size_t columns_of_all(const std::vector<Part>& parts) {
  constexpr std::size_t kGap = 2;
  std::size_t columns = 0;
  for (const Part& part : parts) columns += kGap + columns_of(part.text);
  return columns;
}

std::string drawn_bar(double done, std::size_t columns, bool colour) {
  const auto filled = static_cast<std::size_t>(done * static_cast<double>(columns));
  std::string text;
  if (colour) text += kGreen;
  for (std::size_t i = 0; i < filled; ++i) text += "━";
  if (colour) text += kPlain;
  if (colour) text += kDim;
  for (std::size_t i = filled; i < columns; ++i) text += "─";
  if (colour) text += kPlain;
  return text;
}

}  // namespace

std::string bar_line(const BarState& state, const BarStyle& style) {
  constexpr std::size_t kLeastBar = 10;
  constexpr std::size_t kMostBar = 30;
  constexpr std::size_t kGap = 2;
  const auto width = static_cast<std::size_t>(std::max(style.width - 1, 0));
  const std::string epoch = epoch_text(state.step);
  const std::size_t head = epoch.size() + kGap;
  std::vector<Part> parts = parts_after_bar(state);
  while (!parts.empty() && head + kLeastBar + columns_of_all(parts) > width) {
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.spare < b.spare; }));
  }
  if (head + kLeastBar > width) return epoch.substr(0, width);
  const std::size_t bar = std::min(kMostBar, width - head - columns_of_all(parts));
  std::string line = epoch + "  " + drawn_bar(part_done(state.step), bar, style.colour);
  for (const Part& part : parts) line += "  " + part.text;
  return line;
}

std::string progress_line(const BarState& state) {
  std::string line = epoch_text(state.step);
  for (const Part& part : parts_after_bar(state)) line += "  " + part.text;
  return line;
}

std::string evaluation_line(const train::EvaluationReport& evaluation,
                            const train::StepReport& step) {
  std::string line = base::format("epoch {:.4g}/{:.4g}  accuracy {}", evaluation.epoch, step.epochs,
                                  percent_text(evaluation.accuracy));
  if (evaluation.top5) line += base::format(" (top-5 {})", percent_text(*evaluation.top5));
  return line + base::format("  loss {:.4f} ({:.4f} in training)  {} images/s  {}{}",
                             evaluation.loss, step.loss, speed_text(step.images_per_s),
                             span_text(evaluation.elapsed_s), evaluation.best ? "  best" : "");
}

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

DisplayOutput standard_error_display() {
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
    line(base::format("resumed after step {}", with_commas(start_up.first_step)));
  line(base::format("{}; {} parameters, {} {}, global batch {}; first step after {}", start_up.data,
                    with_commas(start_up.parameters), start_up.ranks,
                    start_up.ranks == 1 ? "rank" : "ranks", with_commas(start_up.global_batch),
                    span_text(start_up.total_s)));
  last_ = output_.now();
}

void TrainingDisplay::stepped(const train::StepReport& step) {
  state_.step = step;
  state_.evaluating.reset();
  draw();
}

void TrainingDisplay::evaluating(std::int64_t done, std::int64_t samples) {
  state_.evaluating = samples > 0 ? static_cast<double>(done) / static_cast<double>(samples) : 1;
  if (output_.width() > 0) draw();
}

void TrainingDisplay::evaluated(const train::EvaluationReport& evaluation) {
  state_.evaluating.reset();
  state_.accuracy = evaluation.accuracy;
  line(evaluation_line(evaluation, state_.step));
  last_ = output_.now();
}

void TrainingDisplay::note(const std::string& sentence) {
  line(base::format("note: {}", sentence));
}

void TrainingDisplay::clear() {
  if (drawn_) output_.write(kClearLine);
  drawn_ = false;
}

void TrainingDisplay::draw() {
  const int width = output_.width();
  const auto now = output_.now();
  if (now - last_ < (width > 0 ? std::chrono::nanoseconds{kBetweenBars} : kBetweenLines)) return;
  last_ = now;
  if (width == 0) return line(progress_line(state_));
  output_.write(base::format("{}{}", kClearLine, bar_line(state_, {width, output_.colour})));
  drawn_ = true;
}

void TrainingDisplay::line(std::string_view text) {
  clear();
  output_.write(base::format("{}\n", text));
}

}  // namespace sluice::cli
