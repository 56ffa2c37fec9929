// log.h - how the library says something.
#pragma once

#include <string>

#include "sluice/log.h"

namespace sluice::base {

void log(const std::string& sentence);

// Sentences go to standard error, unless the user has said where.
void log_to_stderr();

}  // namespace sluice::base
