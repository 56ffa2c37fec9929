#include "cli/reproduce/reproduction.h"

#include <map>
#include <sstream>

#include "base/format.h"

namespace sluice::cli {
namespace {

// Simulates each run once for all its figures.
class RunCache {
 public:
  Result<simulate::TrainingTime> time(const PublishedRun& run, int ranks) {
    const std::pair key{run.row, ranks};
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Result<simulate::TrainingInput> input = input_of(run);
    if (!input.ok()) return input.status();
    input.value().ranks = ranks;
    Result<simulate::TrainingTime> time = simulate::simulate_training(input.value());
    if (time.ok()) known_.emplace(key, time.value());
    return time;
  }

 private:
  std::map<std::pair<std::string, int>, simulate::TrainingTime> known_;
};

}  // namespace

Result<simulate::TrainingInput> input_of(const PublishedRun& run) {
  Result<cluster::Cluster> cluster = cluster::find_cluster(run.cluster);
  if (!cluster.ok()) return cluster.status();
  std::istringstream words{run.settings};
  std::vector<std::string> settings;
  for (std::string word; words >> word;) settings.push_back(word);
  Result<recipe::Recipe> recipe = recipe::load_recipe(run.recipe, settings);
  if (!recipe.ok()) return recipe.status();
  return simulate::TrainingInput{
      .scenario = {.cluster = std::move(cluster).value(), .grid_rows = run.grid_rows},
      .recipe = std::move(recipe).value(),
      .framework = run.framework,
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
  RunCache runs;
  for (const PublishedFigure& figure : published_trainings().figures) {
    const PublishedRun& run = published_trainings().run_of(figure.row);
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
  for (const CrossCheck& check : published_trainings().cross_checks) {
    Result<simulate::TrainingInput> input = input_of(published_trainings().run_of(check.row));
    if (!input.ok()) return input.status();
    Result<simulate::TrainingSimulator> simulator = simulate::TrainingSimulator::of(input.value());
    if (!simulator.ok()) return simulator.status();
    input.value().framework = check.framework;
    const Result<cluster::DeviceSpeed> other = simulate::speed_of(input.value());
    if (!other.ok()) return other.status();
    cluster::DeviceSpeed speed =
        simulator.value().speed();  // except for the curve, all times are its own
    speed.curve = other.value().curve;
    const Result<simulate::TrainingTime> time =
        simulator.value().time(speed, simulator.value().spread());
    if (!time.ok()) return time.status();
    all.push_back(
        {check, time.value().time_to_train_s, time.value().time_to_train_s / check.published - 1});
  }
  return all;
}

namespace {

double value_of(Constant kind, const cluster::DeviceSpeed& speed,
                const simulate::ClusterScenario& scenario) {
  switch (kind) {
    case Constant::Speed:
      return speed.curve.front().images_per_s;
    case Constant::StartUp:
      return speed.startup_s;
    case Constant::LinkEfficiency:
      return scenario.cluster.between_efficiency;
    case Constant::Spread:
      return simulate::spread_of(scenario).fixed_s;
    case Constant::None:
      break;
  }
  return 0;
}

// Computes a figure for any value of its constant.
class Trial {
 public:
  static Result<Trial> of(const PublishedFigure& figure) {
    Result<simulate::TrainingInput> input = input_of(published_trainings().run_of(figure.row));
    if (!input.ok()) return input.status();
    Result<simulate::TrainingSimulator> simulator = simulate::TrainingSimulator::of(input.value());
    if (!simulator.ok()) return simulator.status();
    return Trial{figure, std::move(input).value(), std::move(simulator).value()};
  }

  double in_use() const {
    return value_of(figure_.solved.kind, simulator_.speed(), input_.scenario);
  }

  Result<double> figure_with(double constant) {
    cluster::DeviceSpeed speed = simulator_.speed();
    simulate::Spread spread = simulator_.spread();
    switch (figure_.solved.kind) {
      case Constant::Speed: {
        const double times = constant / speed.curve.front().images_per_s;
        for (cluster::SpeedPoint& point : speed.curve) point.images_per_s *= times;
        break;
      }
      case Constant::StartUp:
        speed.startup_s = constant;
        break;
      case Constant::Spread:
        spread.fixed_s = constant;
        break;
      case Constant::LinkEfficiency: {
        const std::string setting = base::format("between.efficiency={}", constant);
        if (Status status = simulate::apply(input_.scenario, {setting}, false); !status.ok())
          return status;
        Result<simulate::TrainingSimulator> changed = simulate::TrainingSimulator::of(input_);
        if (!changed.ok()) return changed.status();
        simulator_ = std::move(changed).value();
        break;
      }
      case Constant::None:
        break;
    }
    const Result<simulate::TrainingTime> time = simulator_.time(speed, spread);
    if (!time.ok()) return time.status();
    return figure_of(figure_.metric, time.value());
  }

 private:
  Trial(const PublishedFigure& figure, simulate::TrainingInput input,
        simulate::TrainingSimulator simulator)
      : figure_{figure}, input_{std::move(input)}, simulator_{std::move(simulator)} {}

  PublishedFigure figure_;
  simulate::TrainingInput input_;
  simulate::TrainingSimulator simulator_;
};

// Solves by bisection: a figure is monotonic in its constant.
Result<Calibration> solve(const PublishedFigure& figure) {
  constexpr int kHalvings = 40;
  constexpr double kWidestFactor = 2;  // if no range is known: half to twice the value in use
  Result<Trial> trial = Trial::of(figure);
  if (!trial.ok()) return trial.status();
  Calibration answer{.figure = figure, .in_use = trial.value().in_use()};
  const bool ranged = figure.solved.most > 0;
  double low = ranged ? figure.solved.least : answer.in_use / kWidestFactor;
  double high = ranged ? figure.solved.most : answer.in_use * kWidestFactor;
  const Result<double> at_low = trial.value().figure_with(low);
  if (!at_low.ok()) return at_low.status();
  const Result<double> at_high = trial.value().figure_with(high);
  if (!at_high.ok()) return at_high.status();
  const bool rises = at_high.value() > at_low.value();
  if ((at_low.value() > figure.published) == (at_high.value() > figure.published)) {
    answer.at_edge = true;
    const bool lower = (at_low.value() > figure.published) == rises;
    answer.solved = lower ? low : high;
    return answer;
  }
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    const Result<double> there = trial.value().figure_with(middle);
    if (!there.ok()) return there.status();
    ((there.value() < figure.published) == rises ? low : high) = middle;
  }
  answer.solved = (low + high) / 2;
  return answer;
}

}  // namespace

Result<std::vector<Calibration>> calibrate() {
  std::vector<Calibration> all;
  for (const PublishedFigure& figure : published_trainings().figures) {
    if (!figure.calibrated()) continue;
    Result<Calibration> solved = solve(figure);
    if (!solved.ok()) return solved.status();
    all.push_back(solved.value());
  }
  return all;
}

Result<double> constant_in_use(const PublishedFigure& figure) {
  const Result<simulate::TrainingInput> input = input_of(published_trainings().run_of(figure.row));
  if (!input.ok()) return input.status();
  const Result<cluster::DeviceSpeed> speed = simulate::speed_of(input.value());
  if (!speed.ok()) return speed.status();
  return value_of(figure.solved.kind, speed.value(), input.value().scenario);
}

}  // namespace sluice::cli
