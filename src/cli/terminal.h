// terminal.h - output for people: readable numbers, lines that are redrawn, colours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::cli {

inline constexpr std::string_view kClearLine = "\r\033[K";

// Whether the file descriptor is a terminal that can redraw a line.
bool is_terminal(int fd);

// The start of each line on standard error: it erases a progress bar if there can be one.
std::string_view line_start();

// Whether it is a terminal and NO_COLOR is not set.
bool has_colours(int fd);

// "1,281,167".
std::string with_commas(std::int64_t number);

// At least three significant digits: "0.834", "9.71", "96.4", "12,345".
std::string speed_text(double per_second);

// "0.4 s", "12 s", "3 min 05 s", "2 h 07 min", "3 d 04 h"; "?" for a negative or infinite time.
std::string span_text(double seconds);

// "96.42%".
std::string percent_text(double percent);

// Columns of UTF-8 text on a terminal. REQUIRES: no wide characters.
std::size_t columns_of(std::string_view text);

}  // namespace sluice::cli
