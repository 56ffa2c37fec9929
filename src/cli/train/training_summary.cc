#include "cli/train/training_summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string epochs_text(double epochs) {
  return base::format("{:.4g} {}", epochs, epochs == 1 ? "epoch" : "epochs");
}

std::string ending(const train::TrainingSummary& summary) {
  switch (summary.end) {
    case train::TrainingEnd::Done:
      return "trained";
    case train::TrainingEnd::Target:
      return "target reached";
    case train::TrainingEnd::StepLimit:
      return "stopped at the step limit";
    case train::TrainingEnd::Signal:
      return "stopped by a signal";
    case train::TrainingEnd::NotFinite:
      return "stopped because the loss was not finite";
  }
  return "";
}

std::string accuracy(const train::TrainingSummary& summary) {
  if (!summary.last) return base::format("not evaluated; training loss {:.4f}", summary.loss);
  std::string text = percent_text(summary.last->accuracy);
  if (summary.last->top5) text += base::format(", top-5 {}", percent_text(*summary.last->top5));
  text += base::format(" of {} images after {}", with_commas(summary.last->samples),
                       epochs_text(summary.last->epoch));
  if (summary.best && summary.best->step != summary.last->step)
    text += base::format("; best {} after {:.4g}", percent_text(summary.best->accuracy),
                         summary.best->epoch);
  return text;
}

std::string target(const train::TrainingSummary& summary) {
  return summary.target_met
             ? base::format("{} reached {} after the start", percent_text(summary.target),
                            span_text(summary.seconds_to_target))
             : base::format("{} NOT reached", percent_text(summary.target));
}

std::string times(const train::TrainingSummary& summary) {
  return base::format("{} in total: start-up {}, steps {}, evaluation {}, checkpoints {}",
                      span_text(summary.total_s), span_text(summary.start_up.total_s),
                      span_text(summary.train_s), span_text(summary.evaluate_s),
                      span_text(summary.checkpoint_s));
}

std::string start_up(const train::StartUp& parts) {
  std::string text = base::format(
      "{:.2f} s to the first step: process {:.2f}, data {:.2f}, model {:.2f}, gradients {:.2f}",
      parts.total_s, parts.before_s, parts.data_s, parts.model_s, parts.gradients_s);
  if (parts.first_step > 0) text += base::format(", checkpoint {:.2f}", parts.checkpoint_s);
  return text;
}

std::string joining(const train::StartUp& parts) {
  return base::format(
      "{:.2f} s until all ranks were connected, {:.2f} s of it in parallel with data and model",
      parts.communicator_s, std::max(0.0, parts.communicator_s - parts.joining_s));
}

std::string overlap(const train::TrainingSummary& summary) {
  if (summary.ranks == 1) return "one rank: no communication";
  return base::format("steps compute {:.1f}% of the time and wait for the network {:.1f}%",
                      100 * (1 - summary.exposed_comm_fraction),
                      100 * summary.exposed_comm_fraction);
}

std::string network(const train::TrainingSummary& summary, std::int64_t steps) {
  if (summary.ranks == 1) return "one rank: nothing sent";
  std::string text =
      base::format("each rank sent {} of gradients{}", base::format_bytes(summary.bytes_sent),
                   summary.bytes_counted ? "" : " (computed from size and algorithm)");
  if (steps > 0)
    text += base::format(", {} per step",
                         base::format_bytes(summary.bytes_sent / static_cast<double>(steps)));
  return text;
}

void append_all(std::string& text, const std::vector<std::string>& sentences) {
  constexpr std::size_t kMost = 5;
  for (std::size_t i = 0; i < std::min(kMost, sentences.size()); ++i)
    text += base::format("  {:<10}  {}\n", "note", sentences[i]);
  if (sentences.size() > kMost)
    text += base::format("  {:<10}  and {} more\n", "note", sentences.size() - kMost);
}

}  // namespace

std::string summary_text(const train::TrainingSummary& summary, const SummaryContext& context) {
  const std::string bold = context.colour ? "\033[1m" : "";
  const std::string plain = context.colour ? "\033[0m" : "";
  const std::int64_t steps = summary.steps - summary.start_up.first_step;  // since the resume
  const std::string title =
      base::format("{} {}: {}, {} parameters, {} {}", context.recipe, ending(summary),
                   context.model, with_commas(summary.start_up.parameters), summary.ranks,
                   summary.ranks == 1 ? "rank" : "ranks");

  std::vector<std::pair<std::string, std::string>> rows{{"accuracy", accuracy(summary)}};
  if (summary.target > 0) rows.emplace_back("target", target(summary));
  rows.emplace_back("time", times(summary));
  rows.emplace_back("speed",
                    base::format("{} images/s, {} per rank; {} steps, final loss {:.4f}",
                                 speed_text(summary.images_per_s),
                                 speed_text(summary.images_per_s / std::max(1, summary.ranks)),
                                 with_commas(summary.steps), summary.loss));
  rows.emplace_back("data", summary.start_up.data);
  rows.emplace_back("start-up", start_up(summary.start_up));
  if (summary.ranks > 1) rows.emplace_back("joining", joining(summary.start_up));
  rows.emplace_back("overlap", overlap(summary));
  rows.emplace_back("network", network(summary, steps));
  if (summary.skipped_steps > 0) {
    rows.emplace_back("overflow",
                      base::format("skipped {} steps", with_commas(summary.skipped_steps)));
  }
  rows.emplace_back("run",
                    context.run_folder.empty() ? "nothing was saved" : context.run_folder.string());
  const bool early =
      summary.end == train::TrainingEnd::Signal || summary.end == train::TrainingEnd::StepLimit;
  if (early && !context.run_folder.empty()) {
    rows.emplace_back("continue",
                      base::format("sluice train --resume --run {}", context.run_folder.string()));
  }

  std::string rule;
  for (std::size_t i = 0; i < columns_of(title); ++i) rule += "─";
  std::string text = base::format("\n  {}{}{}\n  {}\n", bold, title, plain, rule);
  for (const auto& [name, what] : rows) {
    const bool first = name == "accuracy" || name == "target";
    text += base::format("  {:<10}  {}{}{}\n", name, first ? bold : "", what, first ? plain : "");
  }
  append_all(text, summary.broken_images);
  return text;
}

Json evaluation_json(const train::EvaluationReport& evaluation) {
  return {{"accuracy", evaluation.accuracy},
          {"top5", evaluation.top5 ? Json(*evaluation.top5) : Json(nullptr)},
          {"loss", evaluation.loss},
          {"samples", evaluation.samples},
          {"right", evaluation.correct},
          {"step", evaluation.step},
          {"epoch", evaluation.epoch},
          {"seconds", evaluation.seconds}};
}

std::string evaluation_text(const train::EvaluationReport& evaluation) {
  std::string text = base::format("accuracy {}", percent_text(evaluation.accuracy));
  if (evaluation.top5) text += base::format(", top-5 {}", percent_text(*evaluation.top5));
  return text + base::format(" ({} of {} images), loss {:.4f}; trained for {}, {} steps\n",
                             with_commas(evaluation.correct), with_commas(evaluation.samples),
                             evaluation.loss, epochs_text(evaluation.epoch),
                             with_commas(evaluation.step));
}

Json summary_json(const train::TrainingSummary& summary, const SummaryContext& context) {
  const train::StartUp& parts = summary.start_up;
  Json document{
      {"recipe", context.recipe},
      {"model", context.model},
      {"data", parts.data},
      {"ranks", summary.ranks},
      {"end", train::word_of(summary.end)},
      {"images_per_s", summary.images_per_s},
      {"accuracy", summary.last ? Json(summary.last->accuracy) : Json(nullptr)},
      {"top5", summary.last && summary.last->top5 ? Json(*summary.last->top5) : Json(nullptr)},
      {"loss", summary.loss},
      {"epochs", summary.epochs},
      {"steps", summary.steps},
      {"startup_s", summary.start_up.total_s},
      {"total_s", summary.total_s},
      {"train_s", summary.train_s},
      {"evaluate_s", summary.evaluate_s},
      {"checkpoint_s", summary.checkpoint_s},
      {"exposed_comm_fraction", summary.exposed_comm_fraction},
      {"bytes_sent", summary.bytes_sent},
      {"bytes_counted", summary.bytes_counted},
      {"skipped_steps", summary.skipped_steps},
      {"best", summary.best ? evaluation_json(*summary.best) : Json(nullptr)},
      {"last", summary.last ? evaluation_json(*summary.last) : Json(nullptr)},
      {"startup",
       {{"before_s", parts.before_s},
        {"data_s", parts.data_s},
        {"model_s", parts.model_s},
        {"communicator_s", parts.communicator_s},
        {"joining_s", parts.joining_s},
        {"gradients_s", parts.gradients_s},
        {"checkpoint_s", parts.checkpoint_s},
        {"processor_s", parts.processor_s}}},
      {"run", context.run_folder.empty() ? Json(nullptr) : Json(context.run_folder.string())},
      {"weights_hash", base::format("{:016x}", summary.weights_hash)},
      {"notes", summary.notes}};
  if (summary.target > 0) {
    document["target"] = summary.target;
    document["target_met"] = summary.target_met;
    document["seconds_to_target"] =
        summary.target_met ? Json(summary.seconds_to_target) : Json(nullptr);
  }
  return document;
}

}  // namespace sluice::cli
