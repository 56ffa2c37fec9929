// exceptions.h - what the engine and libtorch throw, as a Status.
#pragma once

#include <functional>

#include "sluice/status.h"

namespace sluice::train {

// Of the exception under way. REQUIRES: called while one is handled.
Status exception_status();

// What `body` returns, or what it throws.
template <class T>
Result<T> guarded(const std::function<Result<T>()>& body) {
  try {
    return body();
  } catch (...) {
    return exception_status();
  }
}

}  // namespace sluice::train
