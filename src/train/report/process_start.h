// process_start.h - when this process began, which is before main(), and what it has used.
#pragma once

#include <chrono>

namespace sluice::train {

// To a hundredth of a second, as the kernel keeps it; now, where it cannot be read.
std::chrono::steady_clock::time_point process_start();

// Seconds of processor time, of all threads so far.
double processor_s();

}  // namespace sluice::train
