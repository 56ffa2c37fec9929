#include "cli/simulate/reproduction.h"

#include <map>
#include <sstream>

#include "cli/simulate/calibrate.h"

namespace sluice::cli {
namespace {

// Simulated once, however many figures a run has.
class Runs {
 public:
  Result<simulate::TrainingTime> time(const PublishedRun& run, int ranks) {
    const std::pair key{run.row, ranks};
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Result<simulate::TrainingQuestion> question = question_of(run);
    if (!question.ok()) return question.status();
    question.value().ranks = ranks;
    Result<simulate::TrainingTime> time = simulate::simulate_training(question.value());
    if (time.ok()) known_.emplace(key, time.value());
    return time;
  }

 private:
  std::map<std::pair<std::string_view, int>, simulate::TrainingTime> known_;
};

}  // namespace

Result<simulate::TrainingQuestion> question_of(const PublishedRun& run) {
  Result<cluster::Cluster> cluster = cluster::find_cluster(std::string{run.cluster});
  if (!cluster.ok()) return cluster.status();
  std::istringstream words{std::string{run.settings}};
  std::vector<std::string> settings;
  for (std::string word; words >> word;) settings.push_back(word);
  Result<recipe::Recipe> recipe = recipe::load_recipe(run.recipe, settings);
  if (!recipe.ok()) return recipe.status();
  return simulate::TrainingQuestion{
      .world = {.cluster = std::move(cluster).value(), .grid_rows = run.grid_rows},
      .recipe = std::move(recipe).value(),
      .framework = std::string{run.framework},
      .ranks = run.ranks};
}

double figure_of(Metric metric, const simulate::TrainingTime& time) {
  switch (metric) {
    case Metric::Seconds:
      return time.time_to_train_s;
    case Metric::ImagesPerSecond:
      return time.images_per_s;
    case Metric::Speedup:
      return time.speedup;
    case Metric::Efficiency:
      return time.efficiency;
  }
  return 0;
}

Result<std::vector<Reproduction>> reproduce() {
  std::vector<Reproduction> all;
  Runs runs;
  for (const PublishedFigure& figure : published_figures()) {
    const PublishedRun& run = run_of(figure.row);
    const Result<simulate::TrainingTime> time = runs.time(run, run.ranks);
    if (!time.ok()) return time.status();
    Reproduction each{
        .figure = figure, .run = run, .simulated = figure_of(figure.metric, time.value())};
    if (figure.base_ranks > 1) {
      const Result<simulate::TrainingTime> base = runs.time(run, figure.base_ranks);
      if (!base.ok()) return base.status();
      each.simulated /= figure_of(figure.metric, base.value());
    }
    each.error = each.simulated / figure.published - 1;
    if (figure.calibrated()) {
      const Result<double> constant = constant_in_use(figure);
      if (!constant.ok()) return constant.status();
      each.constant = constant.value();
    }
    all.push_back(each);
  }
  return all;
}

Result<std::vector<CrossChecked>> cross_checks() {
  std::vector<CrossChecked> all;
  for (const CrossCheck& check : published_cross_checks()) {
    Result<simulate::TrainingQuestion> question = question_of(run_of(check.row));
    if (!question.ok()) return question.status();
    Result<simulate::TrainingSimulator> simulator =
        simulate::TrainingSimulator::of(question.value());
    if (!simulator.ok()) return simulator.status();
    question.value().framework = check.framework;
    const Result<cluster::DeviceSpeed> other = simulate::speed_of(question.value());
    if (!other.ok()) return other.status();
    cluster::DeviceSpeed speed = simulator.value().speed();  // its own start-up and the like
    speed.curve = other.value().curve;
    const Result<simulate::TrainingTime> time =
        simulator.value().time(speed, simulator.value().spread());
    if (!time.ok()) return time.status();
    all.push_back(
        {check, time.value().time_to_train_s, time.value().time_to_train_s / check.published - 1});
  }
  return all;
}

}  // namespace sluice::cli
