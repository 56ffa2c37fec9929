#include "sluice/status.h"

namespace sluice {

const char* name(Code code) {
  switch (code) {
    case Code::Ok:
      return "ok";
    case Code::InvalidArgument:
      return "invalid argument";
    case Code::InvalidInput:
      return "invalid input";
    case Code::NotProven:
      return "not proven";
  }
  return "unknown";
}

}  // namespace sluice
