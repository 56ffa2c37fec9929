#include "train/report/metrics.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format.h"

namespace sluice::train {
namespace {

using nlohmann::ordered_json;

constexpr double kLeastSeconds = 0.1;
constexpr double kLines = 200;  // at most one line for each 1/200 of the time so far

Status cannot(const char* what, const std::filesystem::path& path) {
  return {Code::InvalidInput, base::format("{} cannot be {}", path.string(), what)};
}

// Returns the lines up to a step. Leaves out incomplete lines and lines that are not metrics.
std::vector<std::string> lines_until(const std::filesystem::path& path, std::int64_t step) {
  std::vector<std::string> lines;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    const auto json = ordered_json::parse(line, nullptr, false);
    if (json.is_object() && json.value("step", step + 1) <= step) lines.push_back(line);
  }
  return lines;
}

}  // namespace

Result<Metrics> Metrics::open(const std::filesystem::path& path, std::int64_t step) {
  const std::vector<std::string> kept = lines_until(path, step);
  std::ofstream file{path, std::ios::trunc};
  for (const std::string& line : kept) file << line << '\n';
  if (!file.flush()) return cannot("written", path);
  return Metrics{path, std::move(file)};
}

void Metrics::write(const StepReport& report) {
  if (report.elapsed_s < next_s_) return;
  next_s_ = report.elapsed_s + std::max(kLeastSeconds, report.elapsed_s / kLines);
  file_ << ordered_json{{"kind", "step"},
                        {"step", report.step},
                        {"epoch", report.epoch},
                        {"loss", report.loss},
                        {"rate", report.rate},
                        {"images_per_s", report.images_per_s},
                        {"exposed_comm_fraction", report.exposed_comm_fraction},
                        {"elapsed_s", report.elapsed_s}}
               .dump()
        << std::endl;
}

void Metrics::write(const EvaluationReport& report) {
  ordered_json json{{"kind", "evaluation"},
                    {"step", report.step},
                    {"epoch", report.epoch},
                    {"accuracy", report.accuracy}};
  if (report.top5) json["top5"] = *report.top5;
  json["loss"] = report.loss;
  json["samples"] = report.samples;
  json["seconds"] = report.seconds;
  json["elapsed_s"] = report.elapsed_s;
  file_ << json.dump() << std::endl;
}

Status Metrics::status() const { return file_ ? Status{} : cannot("written", path_); }

}  // namespace sluice::train
