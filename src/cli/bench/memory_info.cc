#include "cli/bench/memory_info.h"

#include <fstream>
#include <string>

#include "base/format.h"
#include "base/text.h"
#include "sluice/status.h"

namespace sluice::cli {

double memory_bytes(const char* key) {
  std::ifstream file{"/proc/meminfo"};
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(line.find(':') + 1)) * 1024;
  }
  return 0;
}

void require_memory(double bytes) {
  const double available = memory_bytes("MemAvailable");
  if (available <= 0 || bytes <= available) return;
  throw Error{Status{Code::InvalidArgument,
                     base::format("this needs {} of memory and {} are available: ask for smaller "
                                  "sizes or fewer ranks",
                                  base::format_bytes(bytes), base::format_bytes(available))}};
}

}  // namespace sluice::cli
