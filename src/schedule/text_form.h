// text_form.h - the words and limits of the text form, for the printer and the parser.
//
// The limits bound the cost of reading any input, however hostile: at most kMaxTextBytes are read,
// and less than 512 MiB of memory is used, all of it by the Schedule. They also bound everything
// that follows from a count (ranks^2 bits in a proof, sums of weights in 64 bits).
// docs/schedule-format.md lists the numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::schedule {

inline constexpr int kTextVersion = 1;

inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxLines = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxLineBytes = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxNameBytes = 64;

inline constexpr std::int64_t kMaxRanks = std::int64_t{1} << 15;
inline constexpr std::int64_t kMaxChunks = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxRanksTimesChunks = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxSegments = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxScratch = 64;
inline constexpr std::int64_t kMaxSteps = std::int64_t{1} << 16;     // of one rank
inline constexpr std::int64_t kMaxAllSteps = std::int64_t{1} << 22;  // sum over all ranks
inline constexpr std::int64_t kMaxOperations = std::int64_t{1} << 22;
inline constexpr std::int64_t kMaxSources = std::int64_t{1} << 23;

// 2^22 operations of at most 2^40 each: every sum of weights fits into 64 bits.
inline constexpr std::int64_t kMaxTotalWeight = std::int64_t{1} << 40;

inline constexpr std::string_view kRankWord = "rank";  // begins every line after the header
inline constexpr std::string_view kUserBufferName = "buffer";

inline std::string_view buffer_name(const std::vector<std::string>& scratch, BufferId id) {
  return id == kUserBuffer ? kUserBufferName : scratch[static_cast<std::size_t>(id - 1)];
}

// A valid name in the text form: a letter, then letters, digits and "_-:", at most kMaxNameBytes.
bool is_name(std::string_view text);

// Whether all names are valid and different, and none is the name of the user's buffer.
inline bool are_scratch_names(const std::vector<std::string>& scratch) {
  for (auto name = scratch.begin(); name != scratch.end(); ++name) {
    if (!is_name(*name) || *name == kUserBufferName) return false;
    if (std::find(scratch.begin(), name, *name) != name) return false;
  }
  return true;
}

}  // namespace sluice::schedule
