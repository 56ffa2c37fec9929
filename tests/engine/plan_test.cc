#include "engine/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::engine {
namespace {

Shape shape_of(const Algorithm& algorithm, int ranks) {
  return complete_shape(algorithm, {.collective = Collective::AllReduce, .ranks = ranks}).value();
}

TEST(Plan, DirectPushesItsSumToAllPeers) {
  const Algorithm& direct = *find_algorithm("direct").value();
  for (const int ranks : {2, 3, 7}) {
    const auto plan = plan_of(direct, shape_of(direct, ranks), ranks - 1);
    const auto instructions = plan->instructions();
    const auto sums = std::count_if(
        instructions.begin(), instructions.end(), [&](const Instruction& instruction) {
          return instruction.whole_sum &&
                 plan->pushes(instruction).size() == static_cast<std::size_t>(ranks - 1);
        });
    EXPECT_EQ(sums, 1) << "its own slice, to all " << ranks - 1 << " peers";
  }
}

TEST(Plan, TheTopOfATreePushesEverySegmentToItsChildren) {
  const Algorithm& tree = *find_algorithm("double_tree").value();
  Shape shape = shape_of(tree, 3);
  shape.segments = 4;
  const auto plan = plan_of(tree, shape, 1);  // the top of the first tree, above 0 and 2
  int segments = 0;
  for (const Instruction& instruction : plan->instructions()) {
    const auto pushes = plan->pushes(instruction);
    if (pushes.empty()) continue;
    ASSERT_EQ(pushes.size(), 2U);
    ++segments;
    for (const std::uint32_t push : pushes) {
      const Instruction& send = plan->instructions()[push];
      EXPECT_EQ(send.kind, Instruction::Kind::Send);
      EXPECT_EQ(send.range, instruction.range);
      EXPECT_EQ(send.peer, push == pushes[0] ? 0 : 2);
    }
  }
  EXPECT_EQ(segments, 4);
}

TEST(Plan, ARingPushesNothing) {
  // In a ring of three, a rank sends its sum to the next rank, which is not a source of the sum.
  const Algorithm& ring = *find_algorithm("ring").value();
  const auto plan = plan_of(ring, shape_of(ring, 3), 0);
  for (const Instruction& instruction : plan->instructions())
    EXPECT_TRUE(plan->pushes(instruction).empty());
}

TEST(Plan, IsBuiltOncePerProcess) {
  const Algorithm& ring = *find_algorithm("ring").value();
  EXPECT_EQ(plan_of(ring, shape_of(ring, 5), 3), plan_of(ring, shape_of(ring, 5), 3));
  EXPECT_NE(plan_of(ring, shape_of(ring, 5), 3), plan_of(ring, shape_of(ring, 5), 4));
}

}  // namespace
}  // namespace sluice::engine
