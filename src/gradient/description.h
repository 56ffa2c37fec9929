// description.h - what a rank was given, in words, so that ranks can compare it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradient/layout.h"
#include "sluice/communicator.h"
#include "sluice/gradients.h"

namespace sluice::gradient {

// One text for each option, then one for each gradient.
std::vector<std::string> describe(const std::vector<GradientSpec>& gradients,
                                  const GradientOptions& options);

// Of all that determines which bytes travel when: equal hashes, equal buckets.
std::uint64_t layout_hash(const std::vector<std::string>& description,
                          const std::vector<std::size_t>& order);

// An error (InvalidInput) that names the first difference between what a state was saved with and
// what it is to be restored to.
Status same_as_saved(const std::vector<std::string>& description,
                     const std::vector<std::string>& saved);

// Where texts of two ranks differ.
struct Difference {
  std::size_t line = 0;  // the first that does
  std::string expected;  // of rank 0, or "none"
  Rank rank = 0;         // the first whose is another
  std::string theirs;
};

// The same at every rank, and every rank must call it. A collective of 16 bytes if there is none.
std::optional<Difference> difference_between_ranks(Communicator& communicator,
                                                   const std::vector<std::string>& lines);

// Every rank must call it. Where any description differs from rank 0's, every rank throws Error
// (Mismatch) with the first difference and whose it is.
void require_same(Communicator& communicator, const std::vector<std::string>& description);

}  // namespace sluice::gradient
