#include "sluice/analysis/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "sluice/torch/data_parallel.h"
#include "tests/libtorch/torch_ranks.h"
#include "tests/libtorch/training.h"

namespace sluice::libtorch {
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
      constexpr int kRecorded = 4;
      for (int number = 0; number < kRecorded; ++number) step(network, parallel, number);
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
        // Without double buffering, finish() waits after backward has ended.
        if (name == "finish" && !double_buffering) {
          EXPECT_GE(event["ts"].get<double>(), backward_end);
        }
        EXPECT_EQ(event["pid"], comm.rank());
      }
      EXPECT_EQ(seen["backward"], kRecorded);
      // Six parameters with a bucket each; with double buffering one bucket for all.
      const int buckets = double_buffering ? 1 : 6;
      for (const char* name : {"wait", "load", "transfer", "unload"})
        EXPECT_EQ(seen[name], kRecorded * buckets) << name;
      EXPECT_GT(timeline.exposed_comm_fraction(), 0);
      EXPECT_LT(timeline.exposed_comm_fraction(), 1);

      const std::size_t recorded = timeline.events().size();
      parallel.set_timeline(nullptr);
      step(network, parallel, 0);
      parallel.flush();
      EXPECT_EQ(timeline.events().size(), recorded);
    });
  }
}

// The 161 gradients of ResNet-50, in the groups that Fujitsu published.
TEST(ParallelTimeline, HasABucketForEachGroup) {
  run_torch_ranks(3, [](Communicator& comm) {
    const std::vector<int> groups{3, 21, 57, 80};
    Parameters parameters;
    for (std::int64_t i = 0; i < 161; ++i)
      parameters.insert(std::to_string(i), parameter(ramp({1 + i % 5}, static_cast<double>(i))));
    DataParallel parallel{parameters, comm, {.groups = groups}};
    Timeline timeline{1000};
    for (int step = 0; step < 3; ++step) {
      clear(parameters, Clearing::ToNone);
      torch::Tensor loss = torch::zeros({});
      for (const auto& item : parameters)
        loss = loss + item.value().square().sum() * (comm.rank() + step);
      parallel.set_timeline(step == 2 ? &timeline : nullptr);
      loss.backward();
      parallel.finish();
      // The mean of (rank + step) over ranks 0 to 2 is 1 + step.
      for (const auto& item : parameters)
        ASSERT_TRUE(torch::allclose(item.value().grad(), item.value() * 2 * (1 + step)));
    }
    const auto buckets = std::count_if(
        timeline.events().begin(), timeline.events().end(),
        [](const Timeline::Event& event) { return std::string{event.name} == "transfer"; });
    EXPECT_EQ(buckets, 4);
  });
}

TEST(ParallelTimeline, RecordsOnlyTheBackwardThatSends) {
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

// The identity; its backward takes the given time.
struct Pause : torch::autograd::Function<Pause> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               std::int64_t milliseconds) {
    context->saved_data["milliseconds"] = milliseconds;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds{context->saved_data["milliseconds"].toInt()});
    return {gradients[0], torch::Tensor{}};
  }
};

// Doubles the delay until a bucket arrives during it, because the machine may be busy.
TEST(ParallelTimeline, BucketsArriveWhileBackwardGoesOn) {
  run_torch_ranks(2, [](Communicator& comm) {
    Network network{Setting{.type = torch::kFloat}, std::nullopt};
    DataParallel parallel{*network, comm, {.theta = 1}};
    step(network, parallel, 0);
    std::int32_t arrived = 0;  // 1: in time at all ranks
    for (int milliseconds = 5; arrived == 0 && milliseconds < 10'000; milliseconds *= 2) {
      Timeline timeline{100};
      parallel.set_timeline(&timeline);
      network->zero_grad(true);
      const torch::Tensor inputs = samples(torch::kFloat, 1, 0, 7).inputs;
      const torch::Tensor early = Pause::apply(network->first->forward(inputs), milliseconds);
      const torch::Tensor late = network->second->forward(torch::tanh(early));
      network->last->forward(torch::tanh(late).flatten(1)).square().mean().backward();
      parallel.finish();
      parallel.set_timeline(nullptr);
      std::int64_t backward_end = 0;
      for (const Timeline::Event& event : timeline.events()) {
        if (std::string{event.name} == "backward") backward_end = event.end_ns;
      }
      // The buckets of `second` and `last`, whose backward runs before the delay: two weights and
      // two biases.
      const auto in_time = std::count_if(
          timeline.events().begin(), timeline.events().end(), [&](const Timeline::Event& event) {
            return std::string{event.name} == "unload" && event.end_ns < backward_end;
          });
      arrived = in_time >= 4 ? 1 : 0;
      comm.all_reduce(std::span{&arrived, 1}, {.op = ReduceOp::Min}).wait();
    }
    EXPECT_EQ(arrived, 1);
  });
}

}  // namespace
}  // namespace sluice::libtorch
