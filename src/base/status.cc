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
    case Code::NoMemory:
      return "no memory";
    case Code::Mismatch:
      return "mismatch";
    case Code::PeerLost:
      return "peer lost";
    case Code::DeadlineExceeded:
      return "deadline exceeded";
  }
  return "unknown";
}

}  // namespace sluice
