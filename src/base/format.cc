#define FMT_HEADER_ONLY
#include "base/format.h"

#include <fmt/format.h>

#include <iterator>

namespace sluice::base {

std::string format_values(fmt::string_view text, fmt::format_args values) {
  return fmt::vformat(text, values);
}

void append_values(std::string& to, fmt::string_view text, fmt::format_args values) {
  fmt::vformat_to(std::back_inserter(to), text, values);
}

void print_values(std::FILE* file, fmt::string_view text, fmt::format_args values) {
  fmt::vprint(file, text, values);
}

}  // namespace sluice::base
