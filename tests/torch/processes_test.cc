// Ranks as processes: `sluice launch -n N -- torch_processes_test`.
#include <ATen/Parallel.h>

#include "tests/engine/in_process.h"
#include "tests/torch/equivalence.h"

namespace sluice {
namespace {

// One for the whole process: ranks join once.
Communicator& world() {
  static Communicator communicator = [] {
    at::set_num_threads(1);
    Communicator joined = Communicator::from_env();
    joined.set_deadline(kTestDeadline);
    return joined;
  }();
  return communicator;
}

TEST(Processes, EqualOne) { equivalence::ranks_equal_one(world(), false); }
TEST(Processes, EqualOneWithSynchronisedBatchNorm) { equivalence::ranks_equal_one(world(), true); }
TEST(Processes, PartsMayDifferInSize) {
  if (world().size() > 1) equivalence::parts_may_differ_in_size(world());
}
TEST(Processes, DirectHasTheSameBitsWhateverTheta) {
  equivalence::direct_has_the_same_bits_whatever_theta(world());
}
TEST(Processes, HaveTheSameBits) { equivalence::all_ranks_have_the_same_bits(world()); }

}  // namespace
}  // namespace sluice
