// instruction_sets.h - runs a check with every instruction set of this machine.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>
#include <vector>

#include "kernels/targets.h"

namespace sluice::kernels {

inline std::vector<std::int64_t> instruction_sets() { return hwy::SupportedAndGeneratedTargets(); }

template <class Check>
void on_every_instruction_set(Check check) {
  for (const std::int64_t target : instruction_sets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace sluice::kernels
