// has.h - whether a text has a part, for sentences that tests look for.
#pragma once

#include <string>

namespace sluice::base {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sluice::base
