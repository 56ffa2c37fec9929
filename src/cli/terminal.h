// terminal.h - where output may redraw itself and have colours.
#pragma once

#include <string_view>

namespace sluice::cli {

inline constexpr std::string_view kClearLine = "\r\033[K";

// Whether a file descriptor leads to a terminal that can do more than write line by line.
bool is_terminal(int fd);

// What a line on standard error begins with: it takes the place of a bar, if there is one.
std::string_view line_start();

// A terminal, and NO_COLOR is not set.
bool has_colours(int fd);

}  // namespace sluice::cli
