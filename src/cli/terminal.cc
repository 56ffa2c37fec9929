#include "cli/terminal.h"

#include <unistd.h>

#include "bootstrap/environment.h"

namespace sluice::cli {

bool is_terminal(int fd) {
  return isatty(fd) == 1 &&
         bootstrap::Environment::of_process().text(bootstrap::variable::kTerminal).value_or("") !=
             "dumb";
}

std::string_view line_start() { return is_terminal(STDERR_FILENO) ? kClearLine : ""; }

bool has_colours(int fd) {
  return is_terminal(fd) &&
         !bootstrap::Environment::of_process().has(bootstrap::variable::kNoColour);
}

}  // namespace sluice::cli
