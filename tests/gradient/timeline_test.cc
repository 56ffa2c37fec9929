#include "sluice/analysis/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "gradient/reducer.h"
#include "tests/engine/ranks.h"
#include "tests/gradient/model.h"

namespace sluice::gradient {
namespace {

TEST(Timeline, CountsEventsBeyondItsCapacity) {
  Timeline timeline{3};
  for (int k = 0; k < 5; ++k) timeline.add({.name = "forward", .begin_ns = k, .end_ns = k + 1});
  EXPECT_EQ(timeline.events().size(), 3U);
  EXPECT_EQ(timeline.events()[2].begin_ns, 2);
  EXPECT_EQ(timeline.dropped(), 2U);
}

TEST(Timeline, ExposedFractionIsTheWaitedPartOfSteps) {
  Timeline timeline{100};
  EXPECT_EQ(timeline.exposed_comm_fraction(), 0);
  timeline.add_wait("finish", 0, 1'000'000'000);  // before the first step
  timeline.end_step();
  for (int step = 0; step < 3; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    timeline.add_wait("finish", 0, 5'000'000);
    timeline.end_step();
  }
  EXPECT_GT(timeline.exposed_comm_fraction(), 0.01);  // a busy machine may sleep longer
  EXPECT_LE(timeline.exposed_comm_fraction(), 0.25);
  timeline.restart_steps();
  EXPECT_EQ(timeline.exposed_comm_fraction(), 0);
}

TEST(Timeline, WritesAChromeTrace) {
  Timeline timeline{4};
  timeline.add({.name = "forward", .begin_ns = 1500, .end_ns = 4000});
  timeline.add({.name = "transfer",
                .thread = Timeline::Thread::Progress,
                .number = 2,
                .begin_ns = 2000,
                .end_ns = 9000});
  const auto trace = nlohmann::json::parse(timeline.chrome_trace(7));
  std::map<std::string, nlohmann::json> events;
  std::map<int, std::string> rows;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") events[event["name"]] = event;
    if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
  }
  EXPECT_EQ(events.at("forward")["ts"], 1.5);
  EXPECT_EQ(events.at("forward")["dur"], 2.5);
  EXPECT_EQ(events.at("forward")["pid"], 7);
  EXPECT_EQ(rows.at(events.at("forward")["tid"]), "compute");
  EXPECT_EQ(rows.at(events.at("transfer")["tid"]), "bucket 2");
  EXPECT_EQ(trace["dropped"], 0);
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "rank 7");
  const auto marked = nlohmann::json::parse(timeline.chrome_trace(7, "simulated"));
  EXPECT_EQ(marked["traceEvents"][0]["args"]["name"], "rank 7, simulated");
}

TEST(Timeline, HasEveryBucketOfEveryStep) {
  const ToyModel model = plain_model();
  for (const bool double_buffering : {false, true}) {
    engine::run_ranks(2, [&](Communicator& comm) {
      Timeline timeline{1000};
      Reducer reducer{comm,
                      model.gradients(),
                      {.theta = 1,
                       .wire = WireType::F16,
                       .force_wire = true,
                       .double_buffering = double_buffering}};
      reducer.set_timeline(&timeline);
      for (int step = 0; step < 4; ++step) {
        model.write_all(reducer, comm.rank(), step);
        reducer.finish();
      }
      reducer.flush();
      std::map<std::string, int> seen;
      std::map<std::int64_t, std::int64_t> ends;  // by bucket
      for (const Timeline::Event& event : timeline.events()) {
        ++seen[event.name];
        EXPECT_LE(event.begin_ns, event.end_ns);
        if (event.thread != Timeline::Thread::Progress) continue;
        if (std::string{event.name} != "wait") {
          EXPECT_EQ(event.begin_ns, ends[event.number]) << "there is a gap between events";
        }
        ends[event.number] = event.end_ns;
      }
      // Five buckets, because the empty gradient joins another; with double buffering one.
      const int buckets = double_buffering ? 1 : 5;
      for (const char* name : {"wait", "load", "transfer", "unload"})
        EXPECT_EQ(seen[name], 4 * buckets);
      EXPECT_EQ(seen["finish"], 4);
      EXPECT_EQ(timeline.dropped(), 0U);
      EXPECT_GE(timeline.exposed_comm_fraction(), 0);
      EXPECT_LE(timeline.exposed_comm_fraction(), 1);
    });
  }
}

}  // namespace
}  // namespace sluice::gradient
