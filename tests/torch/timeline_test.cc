#include "sluice/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sluice/torch/data_parallel.h"
#include "tests/torch/torch_ranks.h"
#include "tests/torch/training.h"

namespace sluice {
namespace {

void step(Network& network, DataParallel& parallel, int number) {
  network->zero_grad(true);
  network->forward(samples(torch::kFloat, number, 0, 7).inputs).square().mean().backward();
  parallel.finish();
}

TEST(ParallelTimeline, HasBackwardAndEveryBucketOfEveryStep) {
  for (const bool double_buffering : {false, true}) {
    run_torch_ranks(2, [&](Communicator& comm) {
      Timeline timeline{1000};
      Network network{Setting{.type = torch::kFloat}, std::nullopt};
      DataParallel parallel{*network, comm, {.theta = 1, .double_buffering = double_buffering}};
      step(network, parallel, 0);
      parallel.set_timeline(&timeline);
      constexpr int kNoted = 4;
      for (int number = 0; number < kNoted; ++number) step(network, parallel, number);
      parallel.flush();

      const auto trace = nlohmann::json::parse(timeline.chrome_trace(comm.rank()));
      std::map<std::string, int> seen;
      double backward_end = 0;
      for (const auto& event : trace["traceEvents"]) {
        if (event["ph"] != "X") continue;
        const std::string name = event["name"];
        ++seen[name];
        if (name == "backward")
          backward_end = event["ts"].get<double>() + event["dur"].get<double>();
        // Without double buffering the step is over before the next backward.
        if (name == "finish" && !double_buffering) {
          EXPECT_GE(event["ts"].get<double>(), backward_end);
        }
        EXPECT_EQ(event["pid"], comm.rank());
      }
      EXPECT_EQ(seen["backward"], kNoted);
      // Six parameters; with double buffering one bucket has all.
      const int buckets = double_buffering ? 1 : 6;
      for (const char* name : {"wait", "load", "transfer", "unload"})
        EXPECT_EQ(seen[name], kNoted * buckets) << name;
      EXPECT_GT(timeline.exposed_comm_fraction(), 0);
      EXPECT_LT(timeline.exposed_comm_fraction(), 1);

      const std::size_t noted = timeline.events().size();
      parallel.set_timeline(nullptr);
      step(network, parallel, 0);
      parallel.flush();
      EXPECT_EQ(timeline.events().size(), noted);
    });
  }
}

TEST(ParallelTimeline, OfSeveralBackwardsTheOneThatSendsIsNoted) {
  run_torch_ranks(2, [](Communicator& comm) {
    Timeline timeline{1000};
    Network network{Setting{.type = torch::kFloat}, std::nullopt};
    DataParallel parallel{*network, comm, {}};
    parallel.set_timeline(&timeline);
    network->zero_grad(true);
    std::int64_t between = 0;
    {
      const auto pause = parallel.no_sync();
      network->forward(samples(torch::kFloat, 0, 0, 7).inputs).square().mean().backward();
      between = timeline.now_ns();
    }
    network->forward(samples(torch::kFloat, 1, 0, 7).inputs).square().mean().backward();
    parallel.finish();
    int backwards = 0;
    for (const Timeline::Event& event : timeline.events()) {
      if (std::string{event.name} != "backward") continue;
      ++backwards;
      EXPECT_GT(event.begin_ns, between);
    }
    EXPECT_EQ(backwards, 1);
  });
}

}  // namespace
}  // namespace sluice
