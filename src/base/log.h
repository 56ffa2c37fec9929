// log.h - writes messages to the log. A message is one sentence, without a newline.
#pragma once

#include <string>
#include <string_view>

#include "sluice/log.h"
#include "sluice/version.h"

namespace sluice::base {

void log_info(const std::string& message);
SLUICE_API void log_warning(const std::string& message);

// Sets the threshold from a value of SLUICE_LOG: info (or stderr, its older spelling), warning or
// off. Returns false for any other value. Changes nothing once the program has called set_log() or
// set_log_level(), which take precedence over the environment.
bool set_log_level_from(std::string_view value);

}  // namespace sluice::base
