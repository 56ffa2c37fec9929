// targets.h - the instruction sets that kernels are compiled for. Include it before Highway.
//
// On x86: plain C++ (which every machine runs), SSE4, AVX2 and AVX-512. No machine of today stops
// at SSSE3. The kernels keep vectors in arrays, which the scalable vectors of Arm and RISC-V do not
// allow; Arm runs NEON.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
