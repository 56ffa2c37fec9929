#include "transport/memory/process_status.h"

#include <fstream>
#include <sstream>
#include <string>

#include "base/format.h"

namespace sluice::transport {

std::optional<ProcessStatus> status_of_process(pid_t pid) {
  std::ifstream file{base::format("/proc/{}/stat", pid)};
  std::string text;
  std::getline(file, text);
  // "17 (name, which may hold anything) S ...": the state, 18 numbers, the start.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest{text.substr(name_end + 1)};
  ProcessStatus status;
  rest >> status.state;
  constexpr int kBetween = 18;
  std::string skipped;
  for (int i = 0; i < kBetween; ++i) rest >> skipped;
  rest >> status.started;
  return rest ? std::optional{status} : std::nullopt;
}

}  // namespace sluice::transport
