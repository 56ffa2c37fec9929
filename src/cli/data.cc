// data.cc - `sluice data pack`: writes images, resized once, as one file that training maps.
#include "data/data.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/host.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "data/formats/pack.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownBroken = 5;

struct Options {
  std::string source;
  std::string file;
  int resize = 0;
  bool raw = false;
  int threads = 0;
  bool json = false;
};

// A progress bar on standard error; shows nothing if that is not a terminal.
class ProgressBar {
 public:
  void show(std::size_t done, std::size_t of) {
    if (!terminal_) return;
    const auto now = std::chrono::steady_clock::now();
    if (done < of && now - shown_ < std::chrono::milliseconds{100}) return;
    shown_ = now;
    constexpr std::size_t kWidth = 40;
    const std::size_t full = of == 0 ? kWidth : done * kWidth / of;
    const std::chrono::duration<double> passed = now - started_;
    const double rate = static_cast<double>(done) / std::max(1e-3, passed.count());
    base::print(stderr, "\r  [{:=<{}}{: <{}}] {} of {} images, {:.0f}/s, {} left \033[K", "", full,
                "", kWidth - full, done, of, rate,
                base::format_seconds(static_cast<double>(of - done) / std::max(1.0, rate)));
    drawn_ = true;
  }
  ~ProgressBar() {
    if (drawn_) base::print(stderr, "{}", kClearLine);
  }

 private:
  bool terminal_ = is_terminal(STDERR_FILENO);
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_;
};

// Overwrites only pack files, never a file of another kind.
void refuse_to_overwrite(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return;
  char magic[8] = {};
  std::ifstream{file, std::ios::binary}.read(magic, sizeof magic);
  if (std::memcmp(magic, data::kPackMagic, sizeof magic) == 0) return;
  base::refuse(base::format("{} exists and is not a pack file: remove it or name another file",
                            file.string()));
}

data::Data open_source(const std::string& source) {
  std::error_code ignored;
  const bool folder = source.find(':') == source.npos && fs::is_directory(source, ignored);
  return data::open_data(folder ? "images:" + source : source).value();
}

void report(const Options& options, const data::PackSummary& summary) {
  if (options.json) {
    const nlohmann::ordered_json document{
        {"file", options.file},       {"train", summary.train}, {"validation", summary.validation},
        {"classes", summary.classes}, {"bytes", summary.bytes}, {"skipped", summary.skipped}};
    base::print("{}\n",
                document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  base::print("{}: {} training images, {} validation images, {} classes, {}\n", options.file,
              summary.train, summary.validation, summary.classes,
              base::format_bytes(static_cast<double>(summary.bytes)));
  base::print("train on it with: sluice train --data pack:{}\n", options.file);
}

Result<data::PackSummary> pack(const data::Data& data, const Options& options) {
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(bootstrap::usable_cores().size());
  ProgressBar bar;
  return data::pack_images(
      data, options.file,
      {.resize = options.resize,
       .raw = options.raw,
       .threads = threads,
       .progress = [&bar](std::size_t done, std::size_t of) { bar.show(done, of); }});
}

int run(const Options& options) {
  refuse_to_overwrite(options.file);
  const data::Data data = open_source(options.source);
  const Result<data::PackSummary> summary = pack(data, options);
  if (summary.status().code() == Code::NoMemory) {
    base::print(stderr, "sluice: {}\n", summary.status().message());
    return kExitMachine;
  }
  const std::vector<std::string>& skipped = summary.value().skipped;
  for (std::size_t i = 0; i < std::min(skipped.size(), kShownBroken); ++i) {
    base::print(stderr, "sluice: skipped an image: {}\n", skipped[i]);
  }
  if (skipped.size() > kShownBroken) {
    base::print(stderr, "sluice: skipped {} more images\n", skipped.size() - kShownBroken);
  }
  report(options, summary.value());
  return kExitDone;
}

}  // namespace

void add_data(CommandLine& program, int& exit_status) {
  CommandLine* const command = program.add_subcommand("data", "Prepare images for training");
  command->require_subcommand();
  command->footer("Example:\n  sluice data pack --help");
  auto options = std::make_shared<Options>();
  CommandLine* const pack =
      command->add_subcommand("pack", "Write images as one file, for fast training");
  pack->add_option("SRC", options->source,
                   "A folder with train/ and val/ or test/, or data as in train --data")
      ->required();
  pack->add_option("OUT", options->file, "The file to write")->required();
  pack->add_option("--resize", options->resize,
                   "Resize larger images so that the shorter side has this many pixels")
      ->range(8, 65536);
  pack->add_flag("--raw", options->raw,
                 "Store pixels instead of JPEG: a larger file that is faster to read");
  pack->add_option("--threads", options->threads,
                   "Number of decoding threads (default: one per core)")
      ->range(1, 1024);
  pack->add_flag("--json", options->json, "Print one JSON document");
  pack->footer(
      "Examples:\n"
      "  sluice data pack imagenet imagenet.pack --resize 256\n"
      "  sluice data pack cifar10:cifar cifar.pack --raw");
  pack->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace sluice::cli
