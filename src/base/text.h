// text.h - parses arguments, formats values for users, and builds error messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/status.h"
#include "sluice/version.h"

namespace sluice::base {

// The candidate with the smallest edit distance to `word`, or "" if none is near.
SLUICE_API std::string_view nearest_name(std::string_view word,
                                         std::span<const std::string_view> candidates);

// Parses a decimal integer in [least, most]. The error begins with `what`: "ranks must be ...".
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t least, std::int64_t most,
                                   std::string_view what);

// Parses a size: "51M", "64KB", "1.5G", "4096". K, M, G and T are powers of 1,024; KB, MB, GB and
// TB are powers of 1,000.
SLUICE_API Result<std::int64_t> parse_bytes(std::string_view text);

// "51.5 MiB", "4 B".
std::string format_bytes(double bytes);

// "12.3 us", "4.56 ms", "7.8 s".
std::string format_seconds(double seconds);

// Parses numbers and ranges, such as "1-64,96", into a sorted list without duplicates. Every number
// must be in [least, most].
Result<std::vector<int>> parse_list(std::string_view text, int least, int most,
                                    std::string_view what);

// Two digits for each byte, in lower case.
std::string to_hexadecimal(std::span<const std::byte> bytes);

// Quotes untrusted text for a message: at most 40 bytes, unprintable ones escaped.
SLUICE_API std::string quote(std::string_view text);

// Throws Error (InvalidArgument). The message says what failed, where, and what to do.
[[noreturn]] inline void refuse(std::string message) {
  throw Error{Status{Code::InvalidArgument, std::move(message)}};
}

}  // namespace sluice::base
