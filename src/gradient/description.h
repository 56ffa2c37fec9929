// description.h - gradients and options as text, so that ranks can compare them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gradient/layout.h"
#include "sluice/communicator.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/version.h"

namespace sluice::gradient {

// One line for each option, then one for each gradient.
std::vector<std::string> describe(const std::vector<GradientSpec>& gradients,
                                  const GradientOptions& options);

// Joins lines into one text, in which a zero byte follows each line; and splits such a text.
std::string join_lines(const std::vector<std::string>& lines);
std::vector<std::string> split_lines(std::string_view text);

// Ranks with equal hashes have equal buckets: the hash covers everything that decides which bytes
// are sent, and in which order.
std::uint64_t layout_hash(const std::vector<std::string>& description,
                          const std::vector<std::size_t>& order);

// Fails (InvalidInput) with the first difference between the description of a saved state and the
// current description.
Status same_as_saved(const std::vector<std::string>& description,
                     const std::vector<std::string>& saved);

// The first line in which two ranks differ.
struct Difference {
  std::size_t line = 0;
  std::string expected;  // rank 0's line, or "none"
  Rank rank = 0;         // the first rank whose line differs
  std::string theirs;    // its line, or "none"
};

// Every rank must call it, and all get the same result. If there is no difference, it costs one
// collective of 16 bytes.
SLUICE_API std::optional<Difference> difference_between_ranks(
    Communicator& communicator, const std::vector<std::string>& lines);

// Every rank must call it. If any description differs from rank 0's, every rank throws an Error
// (Mismatch) that names the first difference and its rank.
void require_same(Communicator& communicator, const std::vector<std::string>& description);

}  // namespace sluice::gradient
