// has.h - whether a text contains another one, for messages that tests check.
#pragma once

#include <string>

namespace sluice::base {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sluice::base
