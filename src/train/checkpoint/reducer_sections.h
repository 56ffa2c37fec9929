// reducer_sections.h - a reducer's state as arrays of a checkpoint.
#pragma once

#include "gradient/reducer_state.h"
#include "train/checkpoint/section_list.h"

namespace sluice::train {

inline constexpr const char* kResidual = "residual";

// What is the same at all ranks. `state` must stay as it is until the sections have been written.
void add_common(const gradient::ReducerState& state, SectionList& to);
// The residual.
void add_own(const gradient::ReducerState& state, SectionList& to);

Result<gradient::ReducerState> reducer_state(const Part& common, const Part& own);

}  // namespace sluice::train
