// checkpoint_folder.h - the checkpoints of a run: a folder each, named by its step.
//
//   step-00001250/common       what is the same at all ranks, written by rank 0
//   step-00001250/rank-0 ...   what each rank has of its own
//
// Ranks write without asking each other, so a checkpoint counts only when all its files are there,
// whole, and of one run. All ranks must see the same folder.
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

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);
// `owner`: a rank, or CheckpointHeader::kCommon.
std::filesystem::path part_path(const std::filesystem::path& checkpoint, int owner);

// Of all checkpoints in a folder, whatever they hold, the newest first. None where there is none.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& folder);

// Reads all files of a checkpoint; the message is the reason why it is refused: the first file that
// is wrong, and how.
Result<CheckpointHeader> check_checkpoint(const std::filesystem::path& checkpoint);

struct NewestCheckpoint {
  std::optional<std::filesystem::path> path;
  std::int64_t step = -1;
  std::vector<std::string> refused;  // a sentence for each newer one
};
NewestCheckpoint newest_checkpoint(const std::filesystem::path& folder);

// Removes all but the newest `keep` whole ones, the one of the highest accuracy (of equals the
// first), and those that are newer than any whole one. Only headers are looked at.
void prune_checkpoints(const std::filesystem::path& folder, int keep);

}  // namespace sluice::train
