// equivalence.h - checks that several ranks, each with a part of a batch, train like one rank with
// the whole batch. Every rank must call these functions.
#pragma once

#include "sluice/communicator.h"

namespace sluice::libtorch::equivalence {

void ranks_equal_one(Communicator& comm, bool normalise);
// One rank has an empty part.
void parts_may_differ_in_size(Communicator& comm);
void direct_has_the_same_bits_whatever_theta(Communicator& comm);
void all_ranks_have_the_same_bits(Communicator& comm);
// The samples choose the branch of the network, so a rank may have no sample for a branch. One
// layer is used in some steps only, at one rank; another layer is never used.
void branches_equal_one(Communicator& comm);

}  // namespace sluice::libtorch::equivalence
