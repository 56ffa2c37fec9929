// run_record.h - run.json: what a run was, for whoever finds its folder.
//
// Settings, versions, commit, data and class names are there from the first step on; how it ended
// is added at the end. The file is replaced as a whole, so that it is never half a record.
#pragma once

#include <filesystem>

#include "sluice/status.h"
#include "train/loop/trainer.h"

namespace sluice::train {

// `summary` null: the run is under way.
Status write_run_record(const std::filesystem::path& path, const TrainerOptions& options,
                        const StartUp& start_up, const TrainingSummary* summary);

}  // namespace sluice::train
