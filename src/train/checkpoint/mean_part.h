// mean_part.h - what ranks have of their own, put together for another number of ranks.
#pragma once

#include <filesystem>

#include "sluice/status.h"
#include "train/checkpoint/checkpoint_file.h"

namespace sluice::train {

// Every f32 and f64 of a checkpoint's rank files becomes its mean over the ranks, summed in f64 in
// their order; all else is rank 0's. One file at a time is in memory.
Result<CheckpointPart> mean_part(const std::filesystem::path& checkpoint,
                                 const CheckpointHeader& common);

// A rank's file, which must belong to `common`.
Result<CheckpointPart> own_part(const std::filesystem::path& checkpoint,
                                const CheckpointHeader& common, int rank);

}  // namespace sluice::train
