// reducer_sections.h - a reducer's state as arrays of a checkpoint.
#pragma once

#include "gradient/reducer_state.h"
#include "train/checkpoint/sections.h"

namespace sluice::train {

inline constexpr const char* kResidual = "residual";

// What is the same at all ranks. `state` must stay as it is until the sections have been written.
void add_common(const gradient::ReducerState& state, SectionWriter& to);
// The residual.
void add_own(const gradient::ReducerState& state, SectionWriter& to);

Result<gradient::ReducerState> reducer_state(const CheckpointPart& common,
                                             const CheckpointPart& own);

}  // namespace sluice::train
