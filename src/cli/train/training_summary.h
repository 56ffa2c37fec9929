// training_summary.h - what a training came to, as a page to read and as a JSON document.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/loop/trainer.h"

namespace sluice::cli {

struct SummaryContext {
  std::string recipe;  // its name
  std::string model;
  std::filesystem::path run_folder;  // empty: nothing was kept
  bool colour = false;
};

// Ends with a line's end.
std::string summary_text(const train::TrainingSummary& summary, const SummaryContext& context);

// Accuracy in percent, fractions 0 to 1, seconds since the start; null for what there is none of.
nlohmann::ordered_json summary_json(const train::TrainingSummary& summary,
                                    const SummaryContext& context);

std::string evaluation_text(const train::EvaluationReport& evaluation);
nlohmann::ordered_json evaluation_json(const train::EvaluationReport& evaluation);

}  // namespace sluice::cli
