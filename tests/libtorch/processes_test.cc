// Ranks as processes: `sluice launch -n N -- torch_processes_test`.
#include <gtest/gtest.h>

#include "tests/libtorch/equivalence.h"
#include "tests/libtorch/torch_ranks.h"

namespace sluice::libtorch {
namespace {

TEST(Processes, EqualOne) { equivalence::ranks_equal_one(torch_world(), false); }
TEST(Processes, EqualOneWithSynchronisedBatchNorm) {
  equivalence::ranks_equal_one(torch_world(), true);
}
TEST(Processes, BranchesEqualOne) { equivalence::branches_equal_one(torch_world()); }
TEST(Processes, PartsMayDifferInSize) {
  if (torch_world().size() > 1) equivalence::parts_may_differ_in_size(torch_world());
}
TEST(Processes, DirectHasTheSameBitsWhateverTheta) {
  equivalence::direct_has_the_same_bits_whatever_theta(torch_world());
}
TEST(Processes, HaveTheSameBits) { equivalence::all_ranks_have_the_same_bits(torch_world()); }

}  // namespace
}  // namespace sluice::libtorch
