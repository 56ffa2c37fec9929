// memory_info.h - how much memory this machine has.
#pragma once

namespace sluice::cli {

// A line of /proc/meminfo, as "MemAvailable"; 0 where there is none.
double memory_bytes(const char* key);

// Throws Error where the machine has less than that available.
void require_memory(double bytes);

}  // namespace sluice::cli
