// refuse.h - no to a caller who asked for something that cannot be.
#pragma once

#include <string>
#include <utility>

#include "sluice/status.h"

namespace sluice::base {

// Throws Error (InvalidArgument) with one sentence: what, where, and what to do.
[[noreturn]] inline void refuse(std::string sentence) {
  throw Error{Status{Code::InvalidArgument, std::move(sentence)}};
}

}  // namespace sluice::base
