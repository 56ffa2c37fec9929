#include "train/report/process_start.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice::train {

std::chrono::steady_clock::time_point process_start() {
  const auto now = std::chrono::steady_clock::now();
  std::ifstream file{"/proc/self/stat"};
  std::string line;
  std::getline(file, line);
  // The second field is the program's name, in which anything may stand; the 22nd is when the
  // process began, in ticks since the machine did.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return now;
  std::istringstream fields{line.substr(name_end + 1)};
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  double ticks = 0;
  timespec machine{};
  const long ticks_per_s = sysconf(_SC_CLK_TCK);
  if (!(fields >> ticks) || ticks_per_s <= 0 || clock_gettime(CLOCK_BOOTTIME, &machine) != 0) {
    return now;
  }
  const double age = static_cast<double>(machine.tv_sec) +
                     static_cast<double>(machine.tv_nsec) * 1e-9 -
                     ticks / static_cast<double>(ticks_per_s);
  if (!(age >= 0)) return now;
  return now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::chrono::duration<double>{age});
}

double processor_s() {
  timespec used{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace sluice::train
