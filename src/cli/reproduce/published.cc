// published.cc - the tables. Clusters and recipes have the numbers, with a tag each that says how
// sure it is.
#include "cli/reproduce/published.h"

#include <algorithm>
#include <array>

namespace sluice::cli {
namespace {

// One message of all gradients in f32 after backward, as ChainerMN sends them by default.
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
    PublishedRun{"google-tpu-v2-pod", "tpu-v2-pod", 256, "google-30min", "algorithm=torus", ""},
    PublishedRun{"tencent-2048", "tencent-p40", 2048, "tencent-6.6min", "", ""},
    PublishedRun{"sony-2176", "abci", 2176, "sony-224s", "", "nnl-1", 34},
    PublishedRun{"sony-3456", "abci", 3456, "sony-122s", "", "nnl-2", 48},
    PublishedRun{"huawei-1024", "ascend-910", 1024, "huawei-59.8s", "", ""},
};

constexpr double kBar = 0.10;

constexpr std::array kFigures{
    PublishedFigure{.row = "mn1-infiniband-32",
                    .published = 6.96 * 3600,
                    .solved = {Constant::Speed, "P100 under Chainer, f32", 150, 165}},
    PublishedFigure{.row = "mn1-10gbe-32",
                    .published = 21.3 * 3600,
                    .solved = {Constant::LinkEfficiency, "NCCL over TCP", 0.10, 0.12}},
    PublishedFigure{.row = "mn1-10gbe-32-overlapped",
                    .published = 7.71 * 3600,
                    .from = "speed and efficiency of the two mn1 rows",
                    .bar = kBar},
    PublishedFigure{.row = "aws-p3-32",
                    .metric = Metric::Efficiency,
                    .published = 0.96,
                    .from = "cluster file; spread of fujitsu-2048",
                    .bar = kBar,
                    .base_ranks = 8},
    PublishedFigure{.row = "pfn-1024",
                    .published = 900,
                    .from = "speed of mn1-infiniband-32; one latency for both figures",
                    .freedom = 1,
                    .bar = kBar},
    PublishedFigure{.row = "pfn-1024",
                    .metric = Metric::Efficiency,
                    .published = 0.80,
                    .from = "the same",
                    .bar = kBar,
                    .base_ranks = 8},
    PublishedFigure{.row = "fujitsu-2048",
                    .metric = Metric::ImagesPerSecond,
                    .published = 1.73e6,
                    .solved = {Constant::Speed, "V100 under MXNet, f16"}},
    PublishedFigure{.row = "fujitsu-2048",
                    .metric = Metric::Efficiency,
                    .published = 0.77,
                    .solved = {Constant::Spread, "ranks' steps, all GPU clusters", 0.9e-3, 1.8e-3}},
    PublishedFigure{.row = "fujitsu-2048",
                    .published = 74.7,
                    .from = "overhead of the log of fujitsu-mlperf-2048",
                    .bar = kBar},
    PublishedFigure{.row = "fujitsu-mlperf-2048",
                    .published = 70.4,
                    .from = "speed and spread of fujitsu-2048; overhead of its own log",
                    .bar = kBar},
    PublishedFigure{.row = "gradientflow-alexnet-512",
                    .published = 90,
                    .solved = {Constant::Speed, "V100 on AlexNet, f16", 3300, 3800}},
    PublishedFigure{.row = "gradientflow-alexnet-512",
                    .metric = Metric::Speedup,
                    .published = 410.2,
                    .from = "spread of fujitsu-2048; cluster file; sparsity 85% assumed",
                    .bar = 0.15},
    PublishedFigure{.row = "gradientflow-baseline-64",
                    .metric = Metric::Speedup,
                    .published = 2.5,
                    .solved = {Constant::Speed, "Pascal on AlexNet, f32", 1600, 3000}},
    PublishedFigure{.row = "facebook-256",
                    .published = 3600,
                    .solved = {Constant::Speed, "P100 under Caffe2, f32", 125, 145}},
    PublishedFigure{.row = "google-tpu-1024",
                    .metric = Metric::ImagesPerSecond,
                    .published = 1.05e6,
                    .solved = {Constant::Speed, "TPU v3 chip, bf16", 1100, 1220}},
    PublishedFigure{.row = "google-tpu-1024",
                    .published = 132,
                    .solved = {Constant::StartUp, "with evaluation", 19, 25}},
    PublishedFigure{.row = "google-tpu-1024-64k",
                    .published = 108,
                    .from = "google-tpu-1024; one speed says nothing of another batch"},
    PublishedFigure{.row = "google-tpu-v2-pod",
                    .published = 1800,
                    .solved = {Constant::Speed, "TPU v2 chip, bf16; 256 chips assumed"}},
    PublishedFigure{.row = "tencent-2048",
                    .published = 396,
                    .solved = {Constant::Speed, "P40 under TensorFlow, f16", 150, 175}},
    PublishedFigure{.row = "sony-2176",
                    .published = 224,
                    .solved = {Constant::Speed, "V100 under NNL, first version, f16", 300, 370}},
    PublishedFigure{.row = "sony-3456",
                    .published = 122,
                    .solved = {Constant::Speed, "V100 under NNL, second version, f16", 450, 670}},
    PublishedFigure{.row = "huawei-1024",
                    .published = 59.8,
                    .solved = {Constant::Speed, "Ascend 910, f16", 2200, 2700}},
    PublishedFigure{.row = "huawei-1024",
                    .metric = Metric::Efficiency,
                    .published = 0.80,
                    .from = "\"above 80%\"; batch, epochs and algorithm assumed"},
};

constexpr std::array kCrossChecks{
    CrossCheck{"sony-2176", "mxnet", 224, -0.52},
    CrossCheck{"sony-3456", "mxnet", 122, -0.28},
    CrossCheck{"sony-2176", "nnl-2", 224, -0.28},
    CrossCheck{"sony-3456", "nnl-1", 122, 0.32},
};

double efficiency_percent(const cluster::Cluster& cluster) {
  return 100 * cluster.between_efficiency;
}
double latency_us(const cluster::Cluster& cluster) {
  return 1e6 * cluster.constants.between.latency_s;
}
double tree_latency_us(const cluster::Cluster& cluster) {
  return 1e6 * cluster.network.tree_latency_s;
}
double inside_gbyte(const cluster::Cluster& cluster) {
  return cluster.constants.inside.bandwidth_bytes_per_s / 1e9;
}
double between_gbyte(const cluster::Cluster& cluster) {
  return cluster.constants.between.bandwidth_bytes_per_s / 1e9;
}
double staging_gbyte(const cluster::Cluster& cluster) {
  return cluster.network.staging_bytes_per_s / 1e9;
}

constexpr std::string_view kEfficiency = "links between nodes, % of their rate";
constexpr std::string_view kLatency = "a message between nodes, us";
constexpr std::string_view kInside = "a device's link inside its node, GB/s";

constexpr std::array kLinkConstants{
    LinkConstant{"mn-1", kEfficiency, 40, 75, efficiency_percent},
    LinkConstant{"mn-1", kLatency, 16, 30, latency_us},
    LinkConstant{"mn-1", kInside, 6, 11, inside_gbyte},
    LinkConstant{"mn-1-10gbe", kEfficiency, 10, 12, efficiency_percent},
    LinkConstant{"aws-p3-16xlarge", kEfficiency, 35, 80, efficiency_percent},
    LinkConstant{"aws-p3-16xlarge", kLatency, 25, 60, latency_us},
    LinkConstant{"abci", kEfficiency, 60, 85, efficiency_percent},
    LinkConstant{"abci", kLatency, 2.5, 4.5, latency_us},
    LinkConstant{"abci", "the same in trees, us", 5, 12, tree_latency_us},
    LinkConstant{"abci", kInside, 35, 60, inside_gbyte},
    LinkConstant{"sensetime-v", kEfficiency, 60, 85, efficiency_percent},
    LinkConstant{"sensetime-v", kLatency, 6, 15, latency_us},
    LinkConstant{"sensetime-p", kEfficiency, 60, 85, efficiency_percent},
    LinkConstant{"sensetime-p", "host memory of a node, GB/s", 10, 25, staging_gbyte},
    LinkConstant{"facebook-bigbasin", kEfficiency, 40, 80, efficiency_percent},
    LinkConstant{"facebook-bigbasin", kLatency, 15, 40, latency_us},
    LinkConstant{"tencent-p40", kEfficiency, 40, 80, efficiency_percent},
    LinkConstant{"tencent-p40", kLatency, 10, 30, latency_us},
    LinkConstant{"tpu-v3-pod", "a ring direction, GB/s", 40, 100, between_gbyte},
    LinkConstant{"ascend-910", kEfficiency, 50, 85, efficiency_percent},
    LinkConstant{"ascend-910", kLatency, 6, 15, latency_us},
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
std::span<const CrossCheck> published_cross_checks() { return kCrossChecks; }
std::span<const LinkConstant> link_constants() { return kLinkConstants; }

const PublishedRun& run_of(std::string_view row) {
  return *std::find_if(kRuns.begin(), kRuns.end(),
                       [&](const PublishedRun& run) { return run.row == row; });
}

}  // namespace sluice::cli
