// text_limits.h - how large a schedule the text form may hold.
//
// They bound what reading any input, however hostile, can cost: below 512 MiB of memory, the whole
// of it in the Schedule being built, and no more than kMaxTextBytes read. Everything that follows
// from a count (ranks^2 bits in a proof, weights added up in 64 bits) stays small as well. The
// numbers are listed in docs/schedule-format.md.
#pragma once

#include <cstdint>

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

}  // namespace sluice::schedule
