// training_summary.h - the results of a training as text and as JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/loop/trainer.h"

namespace sluice::cli {

struct SummaryContext {
  std::string recipe;  // name
  std::string model;
  std::filesystem::path run_folder;  // empty: nothing was saved
  bool colour = false;
};

// Several lines, the last one complete.
std::string summary_text(const train::TrainingSummary& summary, const SummaryContext& context);

// Accuracy in percent, fractions 0 to 1, times in seconds since the start; null: no such value.
nlohmann::ordered_json summary_json(const train::TrainingSummary& summary,
                                    const SummaryContext& context);

std::string evaluation_text(const train::EvaluationReport& evaluation);
nlohmann::ordered_json evaluation_json(const train::EvaluationReport& evaluation);

}  // namespace sluice::cli
