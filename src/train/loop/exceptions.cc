#include "train/loop/exceptions.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "base/format.h"

namespace sluice::train {

Status exception_status() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const c10::Error& error) {
    return {Code::InvalidArgument, base::format("libtorch: {}", error.what_without_backtrace())};
  } catch (const std::bad_alloc&) {
    return {Code::NoMemory, "there is not enough memory for this network and batch"};
  } catch (const std::exception& error) {
    return {Code::InvalidArgument, error.what()};
  }
}

}  // namespace sluice::train
