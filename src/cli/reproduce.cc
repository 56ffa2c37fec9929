// reproduce.cc - `sluice reproduce`: published figures against the simulator, calibrated ones
// apart.
#include "simulate/reproduce.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/command.h"

namespace sluice::cli {
namespace {

struct Options {
  bool markdown = false;
  bool json = false;
};

std::string show(Metric metric, double value) {
  switch (metric) {
    case Metric::Seconds:
      return value >= 7200 ? fmt::format("{:.2f} h", value / 3600) : fmt::format("{:.1f} s", value);
    case Metric::ImagesPerSecond:
      return fmt::format("{:.3g} M images/s", value / 1e6);
    case Metric::Speedup:
      return fmt::format("{:.1f} x", value);
    case Metric::Efficiency:
      return fmt::format("{:.1f}%", 100 * value);
  }
  return "";
}

std::string show(const PublishedFigure& figure) {
  if (figure.metric != Metric::Efficiency || figure.base_ranks == 1)
    return std::string{name(figure.metric)};
  return fmt::format("{} over {} ranks", name(figure.metric), figure.base_ranks);
}

void print_table(const std::vector<Reproduction>& all, bool calibrated) {
  fmt::print("| row | cluster, ranks | figure | published | simulated | error | {} | freedom |\n",
             calibrated ? "solved from this figure" : "constants from");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  for (const Reproduction& each : all) {
    if (each.figure.calibrated != calibrated) continue;
    fmt::print("| {} | {}, {} | {} | {} | {} | {:+.1f}% | {} | {} |\n", each.figure.row,
               each.run.cluster, each.run.ranks, show(each.figure),
               show(each.figure.metric, each.figure.published),
               show(each.figure.metric, each.simulated), 100 * each.error, each.figure.constants,
               each.figure.freedom);
  }
}

void print_document(const std::vector<Reproduction>& all, const std::vector<CrossChecked>& checks) {
  fmt::print(
      "# Reproduction\n\nPublished trainings against the simulator. All figures in the column "
      "\"simulated\" are simulated; this page is\nwritten by `sluice reproduce --markdown`.\n\n");
  fmt::print(
      "## Predicted\n\nEvery constant comes from another row or from the cluster file. `freedom` "
      "counts the constants that were\nsolved from the figure itself.\n\n");
  print_table(all, false);
  fmt::print(
      "\n## Calibrated\n\nA constant of the cluster file was solved from the figure: it agrees by "
      "construction and proves nothing.\n\n");
  print_table(all, true);
  fmt::print(
      "\n## Speeds that must not be shared\n\nThe same runs with the speed of another framework on "
      "the same device. They must come out wrong.\n\n");
  fmt::print("| row | with the speed of | published | simulated | error | expected |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  for (const CrossChecked& each : checks) {
    fmt::print("| {} | {} | {:.0f} s | {:.0f} s | {:+.0f}% | {:+.0f}% |\n", each.check.row,
               each.check.framework, each.check.published, each.simulated, 100 * each.error,
               100 * each.check.expected_error);
  }
}

void print_json(const std::vector<Reproduction>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Reproduction& each : all) {
    json.push_back({{"name", each.figure.row},
                    {"metric", name(each.figure.metric)},
                    {"published", each.figure.published},
                    {"simulated", each.simulated},
                    {"error", each.error},
                    {"calibrated", each.figure.calibrated},
                    {"constants", each.figure.constants},
                    {"degrees_of_freedom", each.figure.freedom}});
  }
  fmt::print("{}\n", json.dump(2));
}

void print_plain(const std::vector<Reproduction>& all) {
  for (const bool calibrated : {false, true}) {
    fmt::print("{}\n", calibrated ? "\nCalibrated: solved from the figure itself, proves nothing"
                                  : "Predicted: every constant from elsewhere");
    fmt::print("  {:<26} {:<26} {:>16} {:>16} {:>8}\n", "row", "figure", "published", "simulated",
               "error");
    for (const Reproduction& each : all) {
      if (each.figure.calibrated != calibrated) continue;
      fmt::print("  {:<26} {:<26} {:>16} {:>16} {:>+7.1f}%\n", each.figure.row, show(each.figure),
                 show(each.figure.metric, each.figure.published),
                 show(each.figure.metric, each.simulated), 100 * each.error);
    }
  }
}

}  // namespace

void add_reproduce(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("reproduce", "Hold the simulator to published trainings");
  command->add_flag("--markdown", options->markdown, "The page docs/reproduction.md");
  command->add_flag("--json", options->json, "One JSON document");
  command->footer("Example:\n  sluice reproduce --markdown > docs/reproduction.md");
  command->callback([options, &exit_status] {
    const std::vector<Reproduction> all = reproduce().value();
    if (options->json) {
      print_json(all);
    } else if (options->markdown) {
      print_document(all, cross_checks().value());
    } else {
      print_plain(all);
    }
    exit_status = kExitDone;
  });
}

}  // namespace sluice::cli
