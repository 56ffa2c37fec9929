// checkpoint_folder.h - the checkpoints of a run: one folder for each, named by its step.
//
//   step-00001250/common       the state that is the same at all ranks, written by rank 0
//   step-00001250/rank-0 ...   the state of each rank
//
// Ranks write without synchronisation, so a checkpoint is valid only if all its files exist, are
// complete and come from the same run. All ranks must see the same folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sluice/status.h"
#include "sluice/types.h"
#include "train/checkpoint/checkpoint_file.h"

namespace sluice::train {

// The name of the folder for checkpoints in a run folder.
inline constexpr const char* kCheckpoints = "checkpoints";

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);
// `owner`: a rank, or CheckpointHeader::kCommon.
std::filesystem::path part_path(const std::filesystem::path& checkpoint, int owner);

// The steps of all checkpoints in a folder, valid or not, the newest first.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& folder);

// Reads all files of a checkpoint. An error names the first bad file and the reason.
Result<CheckpointHeader> check_checkpoint(const std::filesystem::path& checkpoint);

struct NewestCheckpoint {
  std::optional<std::filesystem::path> path;
  std::int64_t step = -1;
  std::vector<std::string> refused;  // a sentence for each newer checkpoint, which is not valid
};
NewestCheckpoint newest_checkpoint(const std::filesystem::path& folder);

// Keeps the newest `keep` complete checkpoints, the one with the highest accuracy (of equal ones
// the oldest), and all newer than the newest complete one. Removes all others. Reads only headers.
void prune_checkpoints(const std::filesystem::path& folder, int keep);

// Reads the file of a rank. A file that does not belong to `common` is an error.
Result<CheckpointPart> own_part(const std::filesystem::path& checkpoint,
                                const CheckpointHeader& common, int rank);

// Combines the files of all ranks, to resume on another number of ranks. Every f32 and f64 value is
// the mean over the ranks, summed in f64 in rank order; everything else is rank 0's. Besides rank
// 0's file, only one file at a time is in memory.
Result<CheckpointPart> mean_part(const std::filesystem::path& checkpoint,
                                 const CheckpointHeader& common);

}  // namespace sluice::train
