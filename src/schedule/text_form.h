// text_form.h - what printer and parser of the text form agree on: its words and its limits.
//
// The limits bound what reading any input, however hostile, can cost: below 512 MiB of memory, all
// of it in the Schedule being built, and no more than kMaxTextBytes read. Everything that follows
// from a count (ranks^2 bits in a proof, weights added up in 64 bits) stays small as well.
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
inline constexpr std::int64_t kMaxAllSteps = std::int64_t{1} << 22;  // of all ranks, added up
inline constexpr std::int64_t kMaxOperations = std::int64_t{1} << 22;
inline constexpr std::int64_t kMaxSources = std::int64_t{1} << 23;

// 2^22 operations of at most 2^40 each: no sum of weights leaves 64 bits.
inline constexpr std::int64_t kMaxTotalWeight = std::int64_t{1} << 40;

inline constexpr std::string_view kRankWord = "rank";  // begins every line behind the header
inline constexpr std::string_view kUserBufferName = "buffer";

inline std::string_view buffer_name(const std::vector<std::string>& scratch, BufferId id) {
  return id == kUserBuffer ? kUserBufferName : scratch[static_cast<std::size_t>(id - 1)];
}

// A name the text form can hold: a letter, then letters, digits and "_-:", kMaxNameBytes at most.
bool is_name(std::string_view text);

// Distinct, proper, and none of them the user's buffer.
inline bool are_scratch_names(const std::vector<std::string>& scratch) {
  for (auto name = scratch.begin(); name != scratch.end(); ++name) {
    if (!is_name(*name) || *name == kUserBufferName) return false;
    if (std::find(scratch.begin(), name, *name) != name) return false;
  }
  return true;
}

}  // namespace sluice::schedule
