// text.h - parses what users type, formats what they read, and words errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/status.h"

namespace sluice::base {

// The candidate with the fewest edits from `word`, or "" when none is near.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

// A whole decimal number in [least, most]; the message names `what`: "ranks must be ...".
Result<std::int64_t> parse_whole(std::string_view text, std::int64_t least, std::int64_t most,
                                 std::string_view what);

// "51M", "64KB", "1.5G", "4096": K, M, G, T are powers of 1,024; KB, MB, GB, TB powers of 1,000.
Result<std::int64_t> parse_bytes(std::string_view text);

// "51.0 MiB", "4 B".
std::string format_bytes(double bytes);

// "12.3 us", "4.56 ms", "7.8 s".
std::string format_seconds(double seconds);

// "1-64,96" as a sorted list without repeats; every number within [least, most].
Result<std::vector<int>> parse_list(std::string_view text, int least, int most,
                                    std::string_view what);

// Bytes that may be unprintable and long, as a short quoted text for a message.
std::string quote(std::string_view text);

// Throws Error (InvalidArgument). `sentence` says what is wrong, where, and what to do.
[[noreturn]] inline void refuse(std::string sentence) {
  throw Error{Status{Code::InvalidArgument, std::move(sentence)}};
}

// Compares a token with the expected one in a time that does not depend on where they differ.
inline bool equal_in_constant_time(std::string_view token, std::string_view expected) {
  unsigned difference = token.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference |= static_cast<unsigned char>(token[i] ^ other);
  }
  return difference == 0;
}

}  // namespace sluice::base
