// well_formed.h - what can be checked of each rank's Program by itself.
#pragma once

#include <string>

#include "sluice/schedule.h"

namespace sluice::schedule {

// "chunk 3", "chunks 3 to 5".
std::string chunks_of(const Range& range, int chunks);

// Ranks, chunks and buffers exist, sources are as their operation needs them, all Programs are cut
// alike, and no two transfers of one step race. "" or one sentence; everything else that verify()
// does relies on this having passed.
std::string why_malformed(const Schedule& schedule);

}  // namespace sluice::schedule
