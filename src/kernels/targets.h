// targets.h - which instruction sets the kernels are compiled for; included before any of Highway.
//
// On x86: plain C++ (what every machine has), SSE4, AVX2, AVX-512. SSSE3 alone is no machine of
// today. The scalable vectors of Arm and RISC-V cannot be held in arrays, which the kernels do; Arm
// runs NEON.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
