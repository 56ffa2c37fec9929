#include "cli/train/recorded_run.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"

namespace sluice::cli {

Result<RecordedRun> recorded_run(const std::filesystem::path& folder,
                                 std::span<const std::string> overrides) {
  const std::string path = (folder / "run.json").string();
  std::ifstream file{path};
  if (!file)
    return Status{Code::InvalidInput,
                  base::format("there is no run to resume in {}: {} cannot be read",
                               base::quote(folder.string()), base::quote(path))};
  const auto document = nlohmann::json::parse(file, nullptr, false);
  const auto settings = document.is_object() ? document.find("settings") : document.end();
  if (settings == document.end() || !settings->is_object()) {
    return Status{
        Code::InvalidInput,
        base::format("{} does not say what was trained: give --recipe and --data as they were",
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
  // RUN, RUN/checkpoints, RUN/checkpoints/STEP or a file of that.
  std::filesystem::path folder = std::filesystem::absolute(checkpoint);
  for (int up = 0; up < 4; ++up, folder = folder.parent_path()) {
    std::ifstream file{folder / "run.json"};
    const auto document = nlohmann::json::parse(file, nullptr, false);
    if (!document.is_object()) continue;
    std::string data = document.value("data", "");
    if (!data.empty()) return data;
  }
  throw Error{Status{Code::InvalidArgument,
                     base::format("no run.json near {} says what data it is for: give --data",
                                  base::quote(checkpoint.string()))}};
}

}  // namespace sluice::cli
