#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "bootstrap/environment.h"

namespace sluice::cli {

bool is_terminal(int fd) {
  return isatty(fd) == 1 &&
         bootstrap::Environment::of_process().text(bootstrap::variable::kTerminal).value_or("") !=
             "dumb";
}

std::string_view line_start() { return is_terminal(STDERR_FILENO) ? kClearLine : ""; }

bool has_colours(int fd) {
  return is_terminal(fd) &&
         !bootstrap::Environment::of_process().has(bootstrap::variable::kNoColour);
}

std::string with_commas(std::int64_t number) {
  std::string digits = base::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string speed_text(double per_second) {
  if (!std::isfinite(per_second) || per_second < 0) return "?";
  if (per_second < 0.9995) return base::format("{:.3f}", per_second);
  if (per_second < 9.995) return base::format("{:.2f}", per_second);
  if (per_second < 99.95) return base::format("{:.1f}", per_second);
  return with_commas(std::llround(per_second));
}

std::string span_text(double seconds) {
  constexpr double kTooLong = 1e10;
  if (!(seconds >= 0) || seconds > kTooLong) return "?";
  if (seconds < 9.95) return base::format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  if (whole < 120) return base::format("{} s", whole);
  const std::int64_t minutes = whole / 60;
  if (minutes < 60) return base::format("{} min {:02} s", minutes, whole % 60);
  const std::int64_t hours = minutes / 60;
  if (hours < 48) return base::format("{} h {:02} min", hours, minutes % 60);
  return base::format("{} d {:02} h", hours / 24, hours % 24);
}

std::string percent_text(double percent) { return base::format("{:.2f}%", percent); }

std::size_t columns_of(std::string_view text) {
  // Counts the bytes that start a UTF-8 character.
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace sluice::cli
