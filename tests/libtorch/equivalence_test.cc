#include "tests/libtorch/equivalence.h"

#include <gtest/gtest.h>

#include "tests/libtorch/torch_ranks.h"

namespace sluice::libtorch {
namespace {

TEST(Equivalence, RanksEqualOne) {
  for (const int ranks : {1, 2, 3, 4, 7})
    run_torch_ranks(ranks, [](Communicator& comm) { equivalence::ranks_equal_one(comm, false); });
}

TEST(Equivalence, RanksEqualOneWithSynchronisedBatchNorm) {
  for (const int ranks : {1, 2, 3, 4, 7})
    run_torch_ranks(ranks, [](Communicator& comm) { equivalence::ranks_equal_one(comm, true); });
}

TEST(Equivalence, BranchesEqualOne) {
  for (const int ranks : {1, 2, 3, 4, 7}) run_torch_ranks(ranks, equivalence::branches_equal_one);
}

TEST(Equivalence, PartsMayDifferInSize) {
  for (const int ranks : {2, 3, 7}) run_torch_ranks(ranks, equivalence::parts_may_differ_in_size);
}

TEST(Equivalence, DirectHasTheSameBitsWhateverTheta) {
  for (const int ranks : {2, 3, 7})
    run_torch_ranks(ranks, equivalence::direct_has_the_same_bits_whatever_theta);
}

TEST(Equivalence, AllRanksHaveTheSameBits) {
  for (const int ranks : {2, 3, 4, 7})
    run_torch_ranks(ranks, equivalence::all_ranks_have_the_same_bits);
}

}  // namespace
}  // namespace sluice::libtorch
