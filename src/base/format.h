// format.h - formats values as text, with {fmt}.
//
// Only format.cc compiles {fmt} itself. This header wraps its type-erased functions, so a source
// that formats text includes little and generates almost no code.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "sluice/version.h"

namespace sluice::base {

SLUICE_API std::string format_values(fmt::string_view text, fmt::format_args values);
void append_values(std::string& to, fmt::string_view text, fmt::format_args values);
void print_values(std::FILE* file, fmt::string_view text, fmt::format_args values);

template <class... T>
std::string format(fmt::format_string<T...> text, T&&... values) {
  return format_values(text, fmt::make_format_args(values...));
}

template <class... T>
void append(std::string& to, fmt::format_string<T...> text, T&&... values) {
  append_values(to, text, fmt::make_format_args(values...));
}

template <class... T>
void print(std::FILE* file, fmt::format_string<T...> text, T&&... values) {
  print_values(file, text, fmt::make_format_args(values...));
}

template <class... T>
void print(fmt::format_string<T...> text, T&&... values) {
  print_values(stdout, text, fmt::make_format_args(values...));
}

// Formats each element with "{}" and puts the separator between them: join(names, ", ").
template <class Range>
std::string join(const Range& range, std::string_view separator) {
  std::string joined;
  for (bool first = true; const auto& element : range) {
    if (!first) joined += separator;
    first = false;
    joined += base::format("{}", element);  // qualified: C++20 has std::format
  }
  return joined;
}

}  // namespace sluice::base
