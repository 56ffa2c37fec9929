// log.h - what Sluice has to say while it works: who it waits for, what it chose.
#pragma once

#include <functional>
#include <string>

namespace sluice {

// Hears every sentence from now on, from any thread; nullptr: silence, which is the default, unless
// SLUICE_LOG is "stderr" (as under `sluice launch`): then they are written there.
void set_log(std::function<void(const std::string& sentence)> sink);

}  // namespace sluice
