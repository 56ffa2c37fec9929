// reproduce.cc - `sluice reproduce`: compares published figures with simulated ones. Predicted and
// calibrated figures have separate tables.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/command.h"
#include "cli/reproduce/reproduction.h"

namespace sluice::cli {
namespace {

std::string show(Metric metric, double value) {
  switch (metric) {
    case Metric::Seconds:
      return value >= 7200 ? base::format("{:.2f} h", value / 3600)
                           : base::format("{:.1f} s", value);
    case Metric::ImagesPerSecond:
      return base::format("{:.3g} M images/s", value / 1e6);
    case Metric::Speedup:
      return base::format("{:.1f} x", value);
    case Metric::Efficiency:
      return base::format("{:.1f}%", 100 * value);
  }
  return "";
}

// "+3.1%"; zero has no sign.
std::string show_error(double error) {
  const std::string text = base::format("{:+.1f}%", 100 * error);
  return text == "-0.0%" || text == "+0.0%" ? "0.0%" : text;
}

std::string show(const PublishedFigure& figure) {
  if (figure.base_ranks == 1) return std::string{name(figure.metric)};
  return base::format("{} over {} ranks", name(figure.metric), figure.base_ranks);
}

// With at most four significant digits.
std::string show(Constant kind, double value) {
  switch (kind) {
    case Constant::Speed:
      return base::format("{:.4g} images/s", value);
    case Constant::StartUp:
      return base::format("{:.3g} s", value);
    case Constant::LinkEfficiency:
      return base::format("{:.3g}% of the link", 100 * value);
    case Constant::Spread:
      return base::format("{:.3g} ms plus 1% of compute", 1e3 * value);
    case Constant::None:
      break;
  }
  return "";
}

std::string show_range(const SolvedConstant& constant) {
  if (constant.most == 0) return "not published";
  const double unit = constant.kind == Constant::LinkEfficiency ? 100
                      : constant.kind == Constant::Spread       ? 1e3
                                                                : 1;
  return base::format("{:g} to {:g}", constant.least * unit, constant.most * unit);
}

bool is_at_edge(const SolvedConstant& constant, double value) {
  constexpr double kNear = 1e-4;
  const auto near = [&](double end) { return std::abs(value / end - 1) < kNear; };
  return constant.most > 0 && (near(constant.least) || near(constant.most));
}

std::string predicted_table(const std::vector<Reproduction>& all) {
  std::string text =
      "| row | cluster, ranks | figure | published | simulated | error | bar | constants from | "
      "degrees of freedom |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Reproduction& each : all) {
    const PublishedFigure& figure = each.figure;
    if (figure.calibrated()) continue;
    text += base::format("| {} | {}, {} | {} | {} | {} | {} | {} | {} | {} |\n", figure.row,
                         each.run.cluster, each.run.ranks, show(figure),
                         show(figure.metric, figure.published), show(figure.metric, each.simulated),
                         show_error(each.error),
                         figure.bar > 0 ? base::format("{:.0f}%", 100 * figure.bar) : "none",
                         figure.from, figure.freedom);
  }
  return text;
}

std::string calibrated_table(const std::vector<Reproduction>& all) {
  std::string text =
      "| row | cluster, ranks | figure | published | simulated | error | solved from it | value | "
      "plausible | degrees of freedom |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Reproduction& each : all) {
    const PublishedFigure& figure = each.figure;
    if (!figure.calibrated()) continue;
    text += base::format("| {} | {}, {} | {} | {} | {} | {} | {} | {}{} | {} | 1 |\n", figure.row,
                         each.run.cluster, each.run.ranks, show(figure),
                         show(figure.metric, figure.published), show(figure.metric, each.simulated),
                         show_error(each.error), figure.solved.name,
                         show(figure.solved.kind, each.constant),
                         is_at_edge(figure.solved, each.constant) ? " (at the edge)" : "",
                         show_range(figure.solved));
  }
  return text;
}

std::string links_table() {
  std::string text = "| cluster | constant | value | plausible |\n|---|---|---|---|\n";
  for (const LinkConstant& constant : published_trainings().links) {
    const cluster::Cluster cluster = cluster::find_cluster(constant.cluster).value();
    text += base::format("| {} | {} | {:.4g} | {:g} to {:g} |\n", constant.cluster, constant.name,
                         constant.value(cluster), constant.least, constant.most);
  }
  return text;
}

std::string runs_table() {
  std::string text =
      "| row | cluster, ranks | recipe | changed settings | framework |\n|---|---|---|---|---|\n";
  for (const PublishedRun& run : published_trainings().runs) {
    std::string changed = run.settings;
    if (run.grid_rows > 0) {
      changed += base::format("{}a torus of {} x {} ranks", changed.empty() ? "" : ", ",
                              run.grid_rows, run.ranks / run.grid_rows);
    }
    text += base::format("| {} | {}, {} | {} | {} | {} |\n", run.row, run.cluster, run.ranks,
                         run.recipe, changed.empty() ? "nothing" : changed,
                         run.framework.empty() ? "the only one" : run.framework);
  }
  return text;
}

std::string checks_table(const std::vector<CrossChecked>& checks) {
  std::string text =
      "| row | with the speed of | published | simulated | error | expected |\n"
      "|---|---|---|---|---|---|\n";
  for (const CrossChecked& each : checks) {
    text += base::format("| {} | {} | {:.0f} s | {:.0f} s | {:+.0f}% | {:+.0f}% |\n",
                         each.check.row, each.check.framework, each.check.published, each.simulated,
                         100 * each.error, 100 * each.check.expected_error);
  }
  return text;
}

std::string reproduction_page(const std::vector<Reproduction>& all,
                              const std::vector<CrossChecked>& checks) {
  return base::format(
      R"(# Reproduction

This page compares published trainings with the simulator; `sluice reproduce --markdown` writes it. All values in a
column "simulated" are simulated. [simulation.md](simulation.md) describes the model. Every constant of
`clusters/*.toml` and `recipes/*.toml` has a tag for its source.

## Predicted

Every constant comes from another row or from the cluster's file. The bar is the largest error that is accepted; a row
without a bar claims nothing. "Degrees of freedom" counts the constants that were chosen to fit the figure itself: one
latency for both figures of pfn-1024 (16 to 30 us keeps both within 10%), and none elsewhere.

{}
## Calibrated

One constant was solved from each of these figures, within its plausible range. The row then agrees by construction
and proves nothing. "At the edge" means that no plausible value gives the figure: the nearest value is used, and the
error remains. `sluice reproduce --calibrate` solves the constants again.

{}
## Links

The table shows the constants of the links in these clusters. The plausible ranges are our own estimates.

{}
## Runs

The table shows the training that was simulated for each row, and the settings that differ from the recipe's file. The
speed of a device belongs to a framework; most clusters have a speed of only one.

{}
## Stragglers

The time of a rank's step is normally distributed, with a standard deviation of {:.3g} ms plus {:.0f}% of its compute time.
It is the same on every cluster of GPUs. A step waits for its slowest rank, so it takes longer by the expected largest
deviation of its ranks. This model was chosen before any comparison. TPU pods have no stragglers.

## Speeds that must not be shared

These are the same runs with the speed of another framework on the same device. The results must be wrong, by about
the expected error.

{})",
      predicted_table(all), calibrated_table(all), links_table(), runs_table(),
      1e3 * simulate::kGpuSpread.fixed_s, 100 * simulate::kGpuSpread.part, checks_table(checks));
}

std::string reproduction_text(const std::vector<Reproduction>& all) {
  std::string text;
  for (const bool calibrated : {false, true}) {
    text += base::format("{}\n  {:<26} {:<26} {:>16} {:>16} {:>8}  {}\n",
                         calibrated
                             ? "\nCalibrated: a constant was solved from the figure, so its error "
                               "proves nothing"
                             : "Predicted: every constant comes from elsewhere",
                         "row", "figure", "published", "simulated", "error",
                         calibrated ? "solved from it" : "constants from");
    for (const Reproduction& each : all) {
      const PublishedFigure& figure = each.figure;
      if (figure.calibrated() != calibrated) continue;
      text += base::format(
          "  {:<26} {:<26} {:>16} {:>16} {:>8}  {}\n", figure.row, show(figure),
          show(figure.metric, figure.published), show(figure.metric, each.simulated),
          show_error(each.error),
          calibrated ? base::format(
                           "{}: {}{}", figure.solved.name, show(figure.solved.kind, each.constant),
                           is_at_edge(figure.solved, each.constant) ? " (at the edge)" : "")
                     : figure.from);
    }
  }
  return text;
}

std::string calibration_text(const std::vector<Calibration>& all) {
  std::string text = base::format("{:<26} {:<38} {:>28} {:>28}  {}\n", "row", "constant", "in use",
                                  "solved", "plausible");
  for (const Calibration& each : all) {
    const SolvedConstant& constant = each.figure.solved;
    text += base::format("{:<26} {:<38} {:>28} {:>28}  {}{}\n", each.figure.row, constant.name,
                         show(constant.kind, each.in_use), show(constant.kind, each.solved),
                         show_range(constant), each.at_edge ? ", at the edge" : "");
  }
  return text;
}

struct Options {
  bool markdown = false;
  bool calibrate = false;
  bool json = false;
};

nlohmann::ordered_json to_json(const std::vector<Reproduction>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Reproduction& each : all) {
    const PublishedFigure& figure = each.figure;
    nlohmann::ordered_json row{{"name", figure.row},
                               {"metric", name(figure.metric)},
                               {"base_ranks", figure.base_ranks},
                               {"published", figure.published},
                               {"simulated", each.simulated},
                               {"error", each.error},
                               {"calibrated", figure.calibrated()},
                               {"degrees_of_freedom", figure.calibrated() ? 1 : figure.freedom}};
    if (figure.calibrated()) {
      row["constant"] = figure.solved.name;
      row["value"] = each.constant;
      if (figure.solved.most > 0) row["plausible"] = {figure.solved.least, figure.solved.most};
    } else {
      row["constants_from"] = figure.from;
      if (figure.bar > 0) row["bar"] = figure.bar;
    }
    json.push_back(std::move(row));
  }
  return json;
}

nlohmann::ordered_json to_json(const std::vector<Calibration>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Calibration& each : all) {
    json.push_back({{"name", each.figure.row},
                    {"constant", each.figure.solved.name},
                    {"in_use", each.in_use},
                    {"solved", each.solved},
                    {"at_edge", each.at_edge}});
  }
  return json;
}

void run(const Options& options) {
  if (options.calibrate) {
    const std::vector<Calibration> all = calibrate().value();
    base::print("{}", options.json ? to_json(all).dump(2) + "\n" : calibration_text(all));
    return;
  }
  const std::vector<Reproduction> all = reproduce().value();
  if (options.json) {
    base::print("{}\n", to_json(all).dump(2));
  } else if (options.markdown) {
    base::print("{}", reproduction_page(all, cross_checks().value()));
  } else {
    base::print("{}", reproduction_text(all));
  }
}

}  // namespace

void add_reproduce(CommandLine& program, int& exit_status) {
  auto options = std::make_shared<Options>();
  CommandLine* const command =
      program.add_subcommand("reproduce", "Compare the simulator with published trainings");
  Option* const markdown =
      command->add_flag("--markdown", options->markdown, "Print the page docs/reproduction.md");
  command
      ->add_flag("--calibrate", options->calibrate,
                 "Solve the constants of the calibrated figures again")
      ->excludes(markdown);
  command->add_flag("--json", options->json, "Print one JSON document")->excludes(markdown);
  command->footer(
      "Examples:\n"
      "  sluice reproduce\n"
      "  sluice reproduce --markdown > docs/reproduction.md\n"
      "  sluice reproduce --calibrate");
  command->callback([options, &exit_status] {
    run(*options);
    exit_status = kExitDone;
  });
}

}  // namespace sluice::cli
