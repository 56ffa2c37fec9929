#include "engine/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::engine {
namespace {

Shape shape_of(const Algorithm& algorithm, int ranks) {
  return complete_shape(algorithm, {.collective = Collective::AllReduce, .ranks = ranks}).value();
}

TEST(Plan, AScheduleThatIsNotProvenHasNoPlan) {
  Algorithm broken = *find_algorithm("ring").value();
  broken.name = "ring without its last step";
  broken.program = [](const Shape& shape, Rank rank) {
    const Program whole = find_algorithm("ring").value()->program(shape, rank);
    Program cut{whole.chunking()};
    for (int step = 0; step + 1 < whole.steps(); ++step) {
      cut.begin_step();
      for (const Send& send : whole.sends(step)) cut.send(send.peer, send.range);
      for (const Write& receive : whole.receives(step)) {
        const auto sources = whole.sources(receive);
        if (receive.combine == Combine::Copy) {
          cut.receive_copy(sources.front(), receive.range);
        } else {
          cut.receive_reduce(receive.range, sources);
        }
      }
    }
    return cut;
  };
  const auto plan = proven_plan(broken, shape_of(broken, 4), 0);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::NotProven);
  EXPECT_NE(plan.status().message().find("not proven and will not run: rank "), std::string::npos)
      << plan.status().message();
}

TEST(Plan, DirectPushesItsSumToAllPeers) {
  const Algorithm& direct = *find_algorithm("direct").value();
  for (const int ranks : {2, 3, 7}) {
    const auto plan = proven_plan(direct, shape_of(direct, ranks), ranks - 1).value();
    const auto instructions = plan->instructions();
    const auto sums = std::count_if(
        instructions.begin(), instructions.end(), [&](const Instruction& instruction) {
          return instruction.whole_sum &&
                 plan->pushes(instruction).size() == static_cast<std::size_t>(ranks - 1);
        });
    EXPECT_EQ(sums, 1) << "its own slice, to all " << ranks - 1 << " peers";
  }
}

TEST(Plan, ARingPushesNothing) {
  // In a ring of three, a rank sends its sum to the next rank, which is not a source of the sum.
  const Algorithm& ring = *find_algorithm("ring").value();
  const auto plan = proven_plan(ring, shape_of(ring, 3), 0).value();
  for (const Instruction& instruction : plan->instructions())
    EXPECT_TRUE(plan->pushes(instruction).empty());
}

}  // namespace
}  // namespace sluice::engine
