#include "train/report/run_reporter.h"

#include <torch/version.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "sluice/version.h"

namespace sluice::train {
namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 1;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text.data(), length};
}

ordered_json start_up_json(const StartUp& start_up) {
  return {{"before_s", start_up.before_s},         {"data_s", start_up.data_s},
          {"model_s", start_up.model_s},           {"communicator_s", start_up.communicator_s},
          {"joining_s", start_up.joining_s},       {"gradients_s", start_up.gradients_s},
          {"checkpoint_s", start_up.checkpoint_s}, {"total_s", start_up.total_s},
          {"processor_s", start_up.processor_s}};
}

ordered_json summary_json(const TrainingSummary& summary) {
  ordered_json json{{"end", word_of(summary.end)},
                    {"steps", summary.steps},
                    {"epochs", summary.epochs},
                    {"loss", summary.loss},
                    {"accuracy", summary.last ? summary.last->accuracy : 0.0}};
  if (summary.last && summary.last->top5) json["top5"] = *summary.last->top5;
  if (summary.best) json["best_accuracy"] = summary.best->accuracy;
  if (summary.target > 0) {
    json["target"] = summary.target;
    json["target_met"] = summary.target_met;
    if (summary.target_met) json["seconds_to_target"] = summary.seconds_to_target;
  }
  json["startup_s"] = summary.start_up.total_s;
  json["total_s"] = summary.total_s;
  json["train_s"] = summary.train_s;
  json["evaluate_s"] = summary.evaluate_s;
  json["checkpoint_s"] = summary.checkpoint_s;
  json["images_per_s"] = summary.images_per_s;
  json["exposed_comm_fraction"] = summary.exposed_comm_fraction;
  json["skipped_steps"] = summary.skipped_steps;
  json["bytes_sent"] = summary.bytes_sent;
  if (!summary.why.empty()) json["why"] = summary.why;
  json["notes"] = summary.notes;
  json["broken_images"] = summary.broken_images;
  return json;
}

// Replaces the whole file by a rename, so readers never see half a record.
Status replace(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::path fresh = path;
  fresh += ".tmp";
  std::error_code error;
  {
    std::ofstream file{fresh, std::ios::trunc};
    if (!(file << text).flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(fresh, path, error);
  if (!error) return {};
  return {Code::InvalidInput,
          base::format("{} cannot be written: {}", path.string(), error.message())};
}

// Writes run.json. `summary` is null while the run goes on.
Status write_run_record(const std::filesystem::path& path, const TrainerOptions& options,
                        const StartUp& start_up, const TrainingSummary* summary) {
  ordered_json settings = ordered_json::object();
  ordered_json sources = ordered_json::object();
  for (const auto& [key, value] : recipe::settings_of(options.recipe)) {
    settings[key] = value;
    if (std::string source = recipe::source_of(options.recipe, key); !source.empty()) {
      sources[key] = std::move(source);
    }
  }
  ordered_json json{{"format", kFormat},
                    {"sluice", SLUICE_VERSION},
                    {"commit", SLUICE_COMMIT},
                    {"libtorch", TORCH_VERSION},
                    {"written", now()},
                    {"host", host_name()},
                    {"ranks", start_up.ranks},
                    {"recipe", options.recipe.name},
                    {"data", options.data},
                    {"data_description", start_up.data},
                    {"samples", start_up.samples},
                    {"validation_samples", start_up.validation_samples},
                    {"classes", start_up.classes},
                    {"parameters", start_up.parameters},
                    {"tensors", start_up.tensors},
                    {"steps", start_up.steps},
                    {"first_step", start_up.first_step},
                    {"global_batch", start_up.global_batch},
                    {"settings", std::move(settings)},
                    {"sources", std::move(sources)},
                    {"start_up", start_up_json(start_up)}};
  if (options.init) json["init"] = options.init->string();
  if (summary != nullptr) json["summary"] = summary_json(*summary);
  return replace(path, json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

RunReporter::RunReporter(const TrainerOptions& options, TrainingEvents* events, bool is_rank_zero)
    : options_{options},
      events_{is_rank_zero && events != nullptr ? events : &no_events_},
      is_rank_zero_{is_rank_zero} {}

Status RunReporter::begin(const StartUp& start_up) {
  if (writes_files()) {
    const std::filesystem::path& folder = options_.run_folder;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      return {Code::InvalidInput,
              base::format("{} cannot be created: {}", folder.string(), error.message())};
    }
    Result<Metrics> metrics = Metrics::open(folder / "metrics.jsonl", start_up.first_step);
    if (!metrics.ok()) return metrics.status();
    metrics_ = std::move(metrics).value();
    Status status = write_run_record(folder / "run.json", options_, start_up, nullptr);
    if (!status.ok()) return status;
  }
  events_->started(start_up);
  return {};
}

void RunReporter::check_metrics() {
  const Status status = metrics_->status();
  if (status.ok()) return;
  metrics_.reset();
  note(base::format("{}: no more metrics are written", status.message()));
}

void RunReporter::stepped(const StepReport& report) {
  events_->stepped(report);
  if (!metrics_) return;
  metrics_->write(report);
  check_metrics();
}

void RunReporter::evaluating(std::int64_t done, std::int64_t samples) {
  events_->evaluating(done, samples);
}

void RunReporter::evaluated(const EvaluationReport& report) {
  events_->evaluated(report);
  if (!metrics_) return;
  metrics_->write(report);
  check_metrics();
}

void RunReporter::checkpointed(const CheckpointReport& report) { events_->checkpointed(report); }

void RunReporter::note(const std::string& sentence) {
  if (!is_rank_zero_) return;
  notes_.push_back(sentence);
  events_->note(sentence);
}

void RunReporter::end(const TrainingSummary& summary) {
  if (!writes_files()) return;
  const Status status =
      write_run_record(options_.run_folder / "run.json", options_, summary.start_up, &summary);
  if (!status.ok()) note(status.message());
}

}  // namespace sluice::train
