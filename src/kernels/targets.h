// targets.h - the instruction sets that kernels are compiled for. Include it before Highway.
//
// On x86: plain C++, which runs on every machine, SSE4, AVX2 and AVX-512. SSSE3 is left out because
// every machine in use that has it has SSE4, too. Scalable vectors (SVE on Arm, RVV on RISC-V) are
// left out because the kernels keep vectors in arrays, which these do not allow. Arm uses NEON.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
