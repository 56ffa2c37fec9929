// log.h - how the library logs. One sentence a message, without a line end.
#pragma once

#include <string>
#include <string_view>

#include "sluice/log.h"

namespace sluice::base {

void log_info(const std::string& message);
void log_warning(const std::string& message);

// Applies a value of SLUICE_LOG: info (or stderr, its older spelling), warning or off. Does nothing
// once the program has called set_log() or set_log_level(): the program decides before the
// environment. Returns whether it knows the value.
bool set_log_level_from(std::string_view value);

}  // namespace sluice::base
