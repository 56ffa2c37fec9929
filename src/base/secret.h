// secret.h - comparing what a stranger says with what only friends know.
#pragma once

#include <string_view>

namespace sluice::base {

// Takes as long for a guess that begins well as for one that does not.
inline bool same_secret(std::string_view said, std::string_view own) {
  unsigned difference = said.size() == own.size() ? 0 : 1;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const char other = own.empty() ? '\0' : own[i % own.size()];
    difference |= static_cast<unsigned char>(said[i] ^ other);
  }
  return difference == 0;
}

}  // namespace sluice::base
