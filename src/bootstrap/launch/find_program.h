// find_program.h - which file a program's name stands for.
#pragma once

#include <string>

#include "bootstrap/environment.h"
#include "sluice/status.h"

namespace sluice::bootstrap {

// As a shell does it: a name with a slash is a path, any other is looked for on PATH. Fails with a
// sentence that says what to write instead.
Result<std::string> find_program(const std::string& name, const Environment& environment);

}  // namespace sluice::bootstrap
