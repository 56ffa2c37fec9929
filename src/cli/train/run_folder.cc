#include "cli/train/run_folder.h"

#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRuns = "runs";

}  // namespace

bool holds_a_run(const fs::path& folder) {
  std::error_code error;
  for (const char* const name : {"run.json", "metrics.jsonl", "checkpoints"}) {
    if (fs::exists(folder / name, error)) return true;
  }
  return false;
}

Result<fs::path> fresh_run_folder(const fs::path& parent, const std::string& name,
                                  std::time_t now) {
  constexpr int kMostTries = 1000;
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> stamp{};
  (void)std::strftime(stamp.data(), stamp.size(), "-%Y%m%d-%H%M%S", &local);
  const std::string stem = fs::path{name}.stem().string();  // the recipe may be a path
  const std::string text = stem + stamp.data();
  std::error_code error;
  fs::create_directories(parent / kRuns, error);
  for (int i = 1; i <= kMostTries && !error; ++i) {
    const fs::path folder = parent / kRuns / (i == 1 ? text : base::format("{}-{}", text, i));
    if (fs::create_directory(folder, error)) return folder;
  }
  return Status{Code::InvalidInput,
                base::format("cannot make a folder for this run in {}: {}; give one with --run",
                             base::quote((parent / kRuns).string()),
                             error ? error.message() : "too many runs in this second")};
}

Status check_run_folder(const fs::path& folder, bool resume) {
  std::error_code error;
  const bool there = fs::exists(folder, error);
  if (there && !fs::is_directory(folder, error)) {
    return {Code::InvalidArgument,
            base::format("{} is not a folder: give another --run", base::quote(folder.string()))};
  }
  if (!resume && holds_a_run(folder)) {
    return {
        Code::InvalidArgument,
        base::format("{} holds a run already: add --resume to continue it, or give another --run",
                     base::quote(folder.string()))};
  }
  if (resume && !holds_a_run(folder)) {
    return {Code::InvalidArgument,
            base::format("there is no run to resume in {}: give the folder of an earlier run with "
                         "--run",
                         base::quote(folder.string()))};
  }
  return {};
}

fs::path newest_run(const fs::path& parent) {
  fs::path newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator{parent / kRuns, error}) {
    if (!holds_a_run(entry.path())) continue;
    const fs::file_time_type time = fs::last_write_time(entry.path(), error);
    if (!newest.empty() && time <= newest_time) continue;
    newest_time = time;
    newest = entry.path();
  }
  return newest;
}

Result<RecordedRun> recorded_run(const std::filesystem::path& folder,
                                 std::span<const std::string> overrides) {
  const std::string path = (folder / "run.json").string();
  std::ifstream file{path};
  if (!file)
    return Status{Code::InvalidInput,
                  base::format("there is no run to resume in {}: cannot read {}",
                               base::quote(folder.string()), base::quote(path))};
  const auto document = nlohmann::json::parse(file, nullptr, false);
  const auto settings = document.is_object() ? document.find("settings") : document.end();
  if (settings == document.end() || !settings->is_object()) {
    return Status{
        Code::InvalidInput,
        base::format("{} does not record the settings: give the --recipe and --data of the run",
                     base::quote(path))};
  }
  std::string toml;
  for (const auto& [key, value] : settings->items())
    if (value.is_string()) toml += base::format("{} = {}\n", key, value.get<std::string>());
  auto recipe = recipe::parse_recipe(toml, path, overrides);
  if (!recipe.ok()) return recipe.status();
  recipe.value().name = document.value("recipe", recipe.value().name);
  return RecordedRun{std::move(recipe).value(), document.value("data", "")};
}

std::string data_of_checkpoint(const std::filesystem::path& checkpoint) {
  // `checkpoint` may be RUN, RUN/checkpoints, RUN/checkpoints/STEP or a file in it.
  std::filesystem::path folder = std::filesystem::absolute(checkpoint);
  for (int up = 0; up < 4; ++up, folder = folder.parent_path()) {
    std::ifstream file{folder / "run.json"};
    const auto document = nlohmann::json::parse(file, nullptr, false);
    if (!document.is_object()) continue;
    std::string data = document.value("data", "");
    if (!data.empty()) return data;
  }
  throw Error{
      Status{Code::InvalidArgument,
             base::format("cannot find the run.json of {}, which names its data: give --data",
                          base::quote(checkpoint.string()))}};
}

}  // namespace sluice::cli
