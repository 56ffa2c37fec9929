#include "cli/simulate/simulate_trace.h"

#include <cmath>

#include "simulate/backward.h"
#include "sluice/timeline.h"

namespace sluice::cli {
namespace {

std::int64_t to_ns(double seconds) { return std::llround(seconds * 1e9); }

}  // namespace

std::string simulated_trace(const simulate::IterationTime& time) {
  const simulate::StepKind& kind = time.kind;
  // Two events a pass, three that follow, and two a bucket.
  Timeline timeline{2 * static_cast<std::size_t>(kind.accumulate) + 3 + 2 * time.buckets.size()};
  double at = 0;
  const auto compute = [&](const char* name, double seconds) {
    if (seconds <= 0) return;
    timeline.add({.name = name, .begin_ns = to_ns(at), .end_ns = to_ns(at + seconds)});
    at += seconds;
  };
  for (int pass = 0; pass < kind.accumulate; ++pass) {
    compute("forward", simulate::kForwardPart * kind.pass_s);
    compute("backward", (1 - simulate::kForwardPart) * kind.pass_s);
  }
  // What is left of the step: sparse selection, the wait for gradients, ranks and images.
  compute("finish", time.seconds - kind.optimizer_s - time.stall_s - at);
  compute("optimizer", kind.optimizer_s);
  compute("input", time.stall_s);
  for (std::size_t k = 0; k < time.buckets.size(); ++k) {
    const simulate::BucketTime& bucket = time.buckets[k];
    const auto show = [&](const char* name, double begin_s, double end_s) {
      timeline.add({.name = name,
                    .lane = Timeline::Lane::Progress,
                    .number = static_cast<std::int64_t>(k),
                    .begin_ns = to_ns(begin_s),
                    .end_ns = to_ns(end_s)});
    };
    show("wait", bucket.ready_s, bucket.begin_s);
    show("transfer", bucket.begin_s, bucket.end_s);
  }
  return timeline.chrome_trace(0, "simulated");
}

}  // namespace sluice::cli
