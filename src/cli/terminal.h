// terminal.h - what people read on a terminal: numbers in a readable form, where to redraw,
// colours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::cli {

inline constexpr std::string_view kClearLine = "\r\033[K";

// Whether a file descriptor leads to a terminal that can do more than write line by line.
bool is_terminal(int fd);

// What a line on standard error begins with: it takes the place of a bar, if there is one.
std::string_view line_start();

// A terminal, and NO_COLOR is not set.
bool has_colours(int fd);

// "1,281,167".
std::string with_commas(std::int64_t number);

// Three digits that count and the rest as it is: "0.834", "9.71", "96.4", "12,345".
std::string speed_text(double per_second);

// "0.4 s", "12 s", "3 min 05 s", "2 h 07 min", "3 d 04 h"; what is no number is "?".
std::string span_text(double seconds);

// "96.42%".
std::string percent_text(double percent);

// Columns that UTF-8 text takes on a terminal; REQUIRES: none of its characters is a wide one.
std::size_t columns_of(std::string_view text);

}  // namespace sluice::cli
