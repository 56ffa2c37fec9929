#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "cli/bench/scaling.h"
#include "cli/simulate/simulate.h"
#include "cli/terminal.h"
#include "sluice/analysis/timeline.h"

namespace sluice::cli {
namespace {

std::int64_t to_ns(double seconds) { return std::llround(seconds * 1e9); }

// A Chrome trace in the format of a run's timeline.json. Its process is "rank 0, simulated".
std::string simulated_trace(const simulate::IterationTime& time) {
  const simulate::IterationWork& work = time.work;
  // Two events per pass, three after the passes, and two per bucket.
  Timeline timeline{2 * static_cast<std::size_t>(work.accumulate) + 3 + 2 * time.buckets.size()};
  double at = 0;
  const auto compute = [&](const char* name, double seconds) {
    if (seconds <= 0) return;
    timeline.add({.name = name, .begin_ns = to_ns(at), .end_ns = to_ns(at + seconds)});
    at += seconds;
  };
  for (int pass = 0; pass < work.accumulate; ++pass) {
    compute("forward", simulate::kForwardPart * work.pass_s);
    compute("backward", (1 - simulate::kForwardPart) * work.pass_s);
  }
  // The rest of the step: sparse selection and the waits for gradients and ranks.
  compute("finish", time.seconds - work.optimizer_s - time.stall_s - at);
  compute("optimizer", work.optimizer_s);
  compute("input", time.stall_s);
  for (std::size_t k = 0; k < time.buckets.size(); ++k) {
    const simulate::BucketTime& bucket = time.buckets[k];
    const auto add = [&](const char* name, double begin_s, double end_s) {
      timeline.add({.name = name,
                    .thread = Timeline::Thread::Progress,
                    .number = static_cast<std::int64_t>(k),
                    .begin_ns = to_ns(begin_s),
                    .end_ns = to_ns(end_s)});
    };
    add("wait", bucket.ready_s, bucket.begin_s);
    add("transfer", bucket.begin_s, bucket.end_s);
  }
  return timeline.chrome_trace(0, "simulated");
}

nlohmann::ordered_json to_json(int ranks, const simulate::TrainingTime& time) {
  nlohmann::ordered_json json{{"ranks", ranks},
                              {"global_batch", time.global_batch},
                              {"iteration_ms", time.iteration.seconds * 1e3},
                              {"compute_ms", time.iteration.compute_s * 1e3},
                              {"exposed_comm_ms", time.iteration.exposed_s * 1e3},
                              {"straggler_ms", time.iteration.straggler_s * 1e3},
                              {"input_stall_ms", time.iteration.stall_s * 1e3},
                              {"images_per_s", time.images_per_s},
                              {"efficiency", time.efficiency},
                              {"speedup", time.speedup},
                              {"time_to_train_s", time.time_to_train_s},
                              {"overhead_s", time.overhead_s},
                              {"exposed_comm_fraction", time.exposed_comm_fraction},
                              {"buckets", nlohmann::ordered_json::array()}};
  for (const simulate::BucketTime& bucket : time.iteration.buckets) {
    json["buckets"].push_back({{"bytes", bucket.bytes},
                               {"algorithm", bucket.algorithm},
                               {"ready_ms", bucket.ready_s * 1e3},
                               {"begin_ms", bucket.begin_s * 1e3},
                               {"end_ms", bucket.end_s * 1e3}});
  }
  return json;
}

void print_json(const TrainingSweep& sweep, const std::vector<simulate::TrainingTime>& times) {
  nlohmann::ordered_json document{{"simulated", true},
                                  {"cluster", sweep.input.scenario.cluster.name},
                                  {"recipe", sweep.input.recipe.name},
                                  {"scaling", sweep.strong ? "strong" : "weak"}};
  if (times.size() == 1) document.update(to_json(sweep.ranks.front(), times.front()));
  document["rows"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < times.size(); ++i)
    document["rows"].push_back(to_json(sweep.ranks[i], times[i]));
  base::print("{}\n", document.dump(2));
}

ScalingCurve curve_of(const TrainingSweep& sweep,
                      const std::vector<simulate::TrainingTime>& times) {
  ScalingCurve curve{.title = base::format("{} on {}", sweep.input.recipe.name,
                                           sweep.input.scenario.cluster.name)};
  for (std::size_t i = 0; i < times.size(); ++i)
    curve.points.push_back({sweep.ranks[i], times[i].efficiency, times[i].images_per_s});
  return curve;
}

void print_text(const TrainingSweep& sweep, const std::vector<simulate::TrainingTime>& times) {
  const cluster::Cluster& cluster = sweep.input.scenario.cluster;
  base::print("Simulated: recipe {} on cluster {} ({}), {} scaling. Nothing was measured.\n\n",
              sweep.input.recipe.name, cluster.name, cluster.device,
              sweep.strong ? "strong" : "weak");
  base::print("{:>7} {:>8} {:>10} {:>10} {:>10} {:>11} {:>10} {:>9} {:>13}\n", "ranks", "batch",
              "iteration", "exposed", "stragglers", "images/s", "efficiency", "speed-up",
              "to train");
  for (std::size_t i = 0; i < times.size(); ++i) {
    const simulate::TrainingTime& time = times[i];
    base::print("{:>7} {:>8} {:>10} {:>10} {:>10} {:>11} {:>9.1f}% {:>9.1f} {:>13}\n",
                sweep.ranks[i], time.global_batch, base::format_seconds(time.iteration.seconds),
                base::format_seconds(time.iteration.exposed_s),
                base::format_seconds(time.iteration.straggler_s), speed_text(time.images_per_s),
                100 * time.efficiency, time.speedup, span_text(time.time_to_train_s));
  }
  if (times.size() > 1) base::print("\n{}", plot_text(curve_of(sweep, times)));
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file{path, std::ios::trunc};
  if (!(file << text).flush()) {
    throw Error{
        Status{Code::InvalidInput,
               base::format("{} cannot be written: check the folder and its permissions", path)}};
  }
}

void check(const TrainingSweep& sweep, const std::vector<simulate::TrainingTime>& times) {
  std::map<std::pair<double, std::string>, std::vector<simulate::ScalePoint>> buckets;
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (const simulate::BucketTime& bucket : times[i].iteration.buckets) {
      buckets[{bucket.bytes, bucket.algorithm}].push_back(
          {sweep.ranks[i], bucket.end_s - bucket.begin_s});
    }
  }
  for (const auto& [bucket, points] : buckets) {
    if (const Status status = simulate::check_scaling(points); !status.ok()) throw Error{status};
  }
}

}  // namespace

void simulate_trainings(TrainingSweep sweep) {
  recipe::Recipe& recipe = sweep.input.recipe;
  if (sweep.strong && recipe.global_batch == 0)
    recipe.global_batch = static_cast<std::int64_t>(recipe.batch) * sweep.ranks.front();
  std::vector<simulate::TrainingTime> times;
  for (const int n : sweep.ranks) {
    sweep.input.ranks = n;
    times.push_back(simulate::simulate_training(sweep.input).value());
  }
  if (sweep.input.scenario.jitter_s == 0) check(sweep, times);
  if (!sweep.plot.empty()) write_file(sweep.plot, plot_svg(curve_of(sweep, times)));
  if (!sweep.trace.empty()) write_file(sweep.trace, simulated_trace(times.back().iteration));
  if (sweep.json) {
    print_json(sweep, times);
  } else {
    print_text(sweep, times);
  }
}

}  // namespace sluice::cli
