// reproduce.cc - `sluice reproduce`: published figures against the simulator, calibrated ones
// apart.

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/command.h"
#include "cli/reproduce/reproduce_text.h"
#include "cli/reproduce/reproduction.h"

namespace sluice::cli {
namespace {

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

void add_reproduce(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("reproduce", "Hold the simulator to published trainings");
  CLI::Option* const markdown =
      command->add_flag("--markdown", options->markdown, "The page docs/reproduction.md");
  command
      ->add_flag("--calibrate", options->calibrate,
                 "Solve anew the constants that come from a published figure")
      ->excludes(markdown);
  command->add_flag("--json", options->json, "One JSON document")->excludes(markdown);
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
