#include "cli/simulate_training.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace sluice::cli {
namespace {

nlohmann::ordered_json to_json(int ranks, const TrainingTime& time) {
  nlohmann::ordered_json json{{"ranks", ranks},
                              {"global_batch", time.global_batch},
                              {"iteration_ms", time.iteration.seconds * 1e3},
                              {"compute_ms", time.iteration.compute_s * 1e3},
                              {"straggler_ms", time.iteration.straggler_s * 1e3},
                              {"images_per_s", time.images_per_s},
                              {"efficiency", time.efficiency},
                              {"speedup", time.speedup},
                              {"time_to_train_s", time.time_to_train_s},
                              {"overhead_s", time.overhead_s},
                              {"exposed_comm_fraction", time.exposed_comm_fraction},
                              {"buckets", nlohmann::ordered_json::array()}};
  for (const BucketTime& bucket : time.iteration.buckets) {
    json["buckets"].push_back({{"bytes", bucket.bytes},
                               {"algorithm", bucket.algorithm},
                               {"ready_ms", bucket.ready_s * 1e3},
                               {"begin_ms", bucket.begin_s * 1e3},
                               {"end_ms", bucket.end_s * 1e3}});
  }
  return json;
}

std::string show_time(double seconds) {
  return seconds >= 7200 ? fmt::format("{:.2f} h", seconds / 3600) : format_seconds(seconds);
}

}  // namespace

void simulate_trainings(TrainingQuestion question, const std::vector<int>& ranks, bool json) {
  std::vector<TrainingTime> times;
  for (const int n : ranks) {
    question.ranks = n;
    times.push_back(simulate_training(question).value());
  }
  if (json) {
    nlohmann::ordered_json document{{"simulated", true},
                                    {"cluster", question.world.cluster.name},
                                    {"recipe", question.recipe.name}};
    if (times.size() == 1) document.update(to_json(ranks.front(), times.front()));
    document["rows"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < times.size(); ++i)
      document["rows"].push_back(to_json(ranks[i], times[i]));
    fmt::print("{}\n", document.dump(2));
    return;
  }
  fmt::print("Simulated: recipe {} on cluster {} ({}). None of it was measured.\n\n",
             question.recipe.name, question.world.cluster.name, question.world.cluster.device);
  fmt::print("{:>7} {:>8} {:>10} {:>11} {:>10} {:>9} {:>9} {:>11}\n", "ranks", "batch", "iteration",
             "images/s", "efficiency", "speed-up", "exposed", "to train");
  for (std::size_t i = 0; i < times.size(); ++i) {
    const TrainingTime& time = times[i];
    fmt::print("{:>7} {:>8} {:>10} {:>11.0f} {:>9.1f}% {:>9.1f} {:>8.1f}% {:>11}\n", ranks[i],
               time.global_batch, format_seconds(time.iteration.seconds), time.images_per_s,
               100 * time.efficiency, time.speedup, 100 * time.exposed_comm_fraction,
               show_time(time.time_to_train_s));
  }
}

}  // namespace sluice::cli
