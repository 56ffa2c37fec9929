#include "simulate/reproduce.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "simulate/training.h"

namespace sluice {
namespace {

constexpr std::string_view kPlain = "double_buffering=false wire=f32 theta=1G";

constexpr std::array kRuns{
    PublishedRun{"mn1-infiniband-32", "mn-1", 32, "chainermn-cloud", kPlain, ""},
    PublishedRun{"mn1-10gbe-32", "mn-1-10gbe", 32, "chainermn-cloud", kPlain, ""},
    PublishedRun{"mn1-10gbe-32-overlapped", "mn-1-10gbe", 32, "chainermn-cloud", "", ""},
    PublishedRun{"aws-p3-32", "aws-p3-16xlarge", 32, "chainermn-cloud", "batch_phases=[]", ""},
    PublishedRun{"pfn-1024", "mn-1", 1024, "pfn-15min", "", ""},
    PublishedRun{"fujitsu-2048", "abci", 2048, "fujitsu-74s", "", "mxnet"},
    PublishedRun{"fujitsu-mlperf-2048", "abci", 2048, "fujitsu-mlperf-70s", "", "mxnet"},
    PublishedRun{"gradientflow-alexnet-512", "sensetime-v", 512, "gradientflow-alexnet", "", ""},
    PublishedRun{"gradientflow-baseline-64", "sensetime-p", 64, "alexnet-mpi-baseline", "", ""},
    PublishedRun{"facebook-256", "facebook-bigbasin", 256, "facebook-1h", "", ""},
    PublishedRun{"google-tpu-1024", "tpu-v3-pod", 1024, "google-tpu", "theta=1G", ""},
    PublishedRun{"google-tpu-1024-64k", "tpu-v3-pod", 1024, "google-tpu", "theta=1G batch=64", ""},
    PublishedRun{"google-tpu-v2-pod", "tpu-v2-pod", 256, "google-30min", "compute=bf16", ""},
    PublishedRun{"tencent-2048", "tencent-p40", 2048, "tencent-6.6min", "", ""},
    PublishedRun{"sony-2176", "abci", 2176, "sony-224s", "", "nnl-1", 34},
    PublishedRun{"sony-3456", "abci", 3456, "sony-122s", "", "nnl-2", 48},
    PublishedRun{"huawei-1024", "ascend-910", 1024, "huawei-59.8s", "", ""},
};

constexpr std::array kFigures{
    PublishedFigure{"mn1-infiniband-32", Metric::Seconds, 6.96 * 3600, true,
                    "P100 speed under Chainer, f32", 1},
    PublishedFigure{"mn1-10gbe-32", Metric::Seconds, 21.3 * 3600, true,
                    "efficiency of TCP on 10 Gbit/s", 1},
    PublishedFigure{"mn1-10gbe-32-overlapped", Metric::Seconds, 7.71 * 3600, false,
                    "both from the two rows above"},
    PublishedFigure{"aws-p3-32", Metric::Efficiency, 0.96, false,
                    "the cluster file's ranges; insensitive to them", 0, 8},
    PublishedFigure{"pfn-1024", Metric::Seconds, 900, false,
                    "speed from mn1-infiniband-32; one latency for both figures", 1},
    PublishedFigure{"pfn-1024", Metric::Efficiency, 0.80, false, "the same", 0, 8},
    PublishedFigure{"fujitsu-2048", Metric::ImagesPerSecond, 1.73e6, true, "V100 speed under MXNet",
                    1},
    PublishedFigure{"fujitsu-2048", Metric::Efficiency, 0.77, true,
                    "spread of ranks, one for all GPU clusters", 1},
    PublishedFigure{"fujitsu-2048", Metric::Seconds, 74.7, false,
                    "overhead from fujitsu-mlperf-2048's log"},
    PublishedFigure{"fujitsu-mlperf-2048", Metric::Seconds, 70.4, false,
                    "speed and spread from fujitsu-2048, overhead from its log"},
    PublishedFigure{"gradientflow-alexnet-512", Metric::Seconds, 90, true,
                    "V100 speed on AlexNet, f16", 1},
    PublishedFigure{"gradientflow-alexnet-512", Metric::Speedup, 410.2, false,
                    "spread from fujitsu-2048; sparsity and link from ranges"},
    PublishedFigure{"gradientflow-baseline-64", Metric::Speedup, 2.5, true,
                    "Pascal speed on AlexNet, f32; the algorithm is assumed", 1},
    PublishedFigure{"facebook-256", Metric::Seconds, 3600, true, "P100 speed under Caffe2", 1},
    PublishedFigure{"google-tpu-1024", Metric::ImagesPerSecond, 1.05e6, true, "chip speed", 1},
    PublishedFigure{"google-tpu-1024", Metric::Seconds, 132, true, "start-up and evaluation", 1},
    PublishedFigure{"google-tpu-1024-64k", Metric::Seconds, 108, false,
                    "both from google-tpu-1024; one point says nothing of another batch"},
    PublishedFigure{"google-tpu-v2-pod", Metric::Seconds, 1800, true,
                    "chip speed; the number of chips is assumed", 1},
    PublishedFigure{"tencent-2048", Metric::Seconds, 396, true, "P40 speed under TensorFlow", 1},
    PublishedFigure{"sony-2176", Metric::Seconds, 224, true,
                    "V100 speed under NNL, first version; start-up borrowed", 1},
    PublishedFigure{"sony-3456", Metric::Seconds, 122, true,
                    "V100 speed under NNL, second version; start-up borrowed", 1},
    PublishedFigure{"huawei-1024", Metric::Seconds, 59.8, true,
                    "Ascend speed; batch and epochs are assumed", 1},
    PublishedFigure{"huawei-1024", Metric::Efficiency, 0.80, false,
                    "\"above 80%\"; batch and epochs are assumed"},
};

constexpr std::array kCrossChecks{
    CrossCheck{"sony-2176", "mxnet", 224, -0.52},
    CrossCheck{"sony-3456", "mxnet", 122, -0.28},
    CrossCheck{"sony-2176", "nnl-2", 224, -0.28},
    CrossCheck{"sony-3456", "nnl-1", 122, 0.32},
};

const PublishedRun& run_of(std::string_view row) {
  return *std::find_if(kRuns.begin(), kRuns.end(),
                       [&](const PublishedRun& run) { return run.row == row; });
}

Result<TrainingQuestion> question_of(const PublishedRun& run) {
  Result<Cluster> cluster = find_cluster(std::string{run.cluster});
  if (!cluster.ok()) return cluster.status();
  std::istringstream words{std::string{run.settings}};
  std::vector<std::string> settings;
  for (std::string word; words >> word;) settings.push_back(word);
  Result<Recipe> recipe = load_recipe(run.recipe, settings);
  if (!recipe.ok()) return recipe.status();
  return TrainingQuestion{
      .world = {.cluster = std::move(cluster).value(), .grid_rows = run.grid_rows},
      .recipe = std::move(recipe).value(),
      .framework = std::string{run.framework},
      .ranks = run.ranks};
}

// Simulated once, however many figures a run has.
class Runs {
 public:
  Result<TrainingTime> time(const PublishedRun& run, int ranks) {
    const std::pair key{run.row, ranks};
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Result<TrainingQuestion> question = question_of(run);
    if (!question.ok()) return question.status();
    question.value().ranks = ranks;
    Result<TrainingTime> time = simulate_training(question.value());
    if (time.ok()) known_.emplace(key, time.value());
    return time;
  }

 private:
  std::map<std::pair<std::string_view, int>, TrainingTime> known_;
};

}  // namespace

std::string_view name(Metric metric) {
  switch (metric) {
    case Metric::Seconds:
      return "time_to_train_s";
    case Metric::ImagesPerSecond:
      return "images_per_s";
    case Metric::Speedup:
      return "speedup";
    case Metric::Efficiency:
      return "efficiency";
  }
  return "";
}

std::span<const PublishedRun> published_runs() { return kRuns; }
std::span<const PublishedFigure> published_figures() { return kFigures; }

Result<std::vector<Reproduction>> reproduce() {
  std::vector<Reproduction> all;
  Runs runs;
  for (const PublishedFigure& figure : kFigures) {
    const PublishedRun& run = run_of(figure.row);
    const Result<TrainingTime> time = runs.time(run, run.ranks);
    if (!time.ok()) return time.status();
    double simulated = 0;
    switch (figure.metric) {
      case Metric::Seconds:
        simulated = time.value().time_to_train_s;
        break;
      case Metric::ImagesPerSecond:
        simulated = time.value().images_per_s;
        break;
      case Metric::Speedup:
        simulated = time.value().speedup;
        break;
      case Metric::Efficiency: {
        const Result<TrainingTime> base = runs.time(run, figure.base_ranks);
        if (!base.ok()) return base.status();
        simulated = time.value().efficiency / base.value().efficiency;
        break;
      }
    }
    all.push_back({figure, run, simulated, simulated / figure.published - 1});
  }
  return all;
}

Result<std::vector<CrossChecked>> cross_checks() {
  std::vector<CrossChecked> all;
  for (const CrossCheck& check : kCrossChecks) {
    PublishedRun run = run_of(check.row);
    run.framework = check.framework;
    Result<TrainingQuestion> question = question_of(run);
    if (!question.ok()) return question.status();
    const Result<TrainingTime> time = simulate_training(question.value());
    if (!time.ok()) return time.status();
    all.push_back(
        {check, time.value().time_to_train_s, time.value().time_to_train_s / check.published - 1});
  }
  return all;
}

}  // namespace sluice
