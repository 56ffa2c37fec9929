// bench_train.cc - `sluice bench train`: measures how training scales with ranks and batch size.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "bootstrap/environment.h"
#include "bootstrap/host.h"
#include "bootstrap/launch/launch.h"
#include "cli/bench/scaling.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/train/train_job.h"

namespace sluice::cli {
namespace {

struct Options {
  std::string ranks;
  std::string batch;
  std::string scaling = "weak";
  std::string steps = "60";
  std::string repeats = "3";
  TrainOptions train;
};

void print_message(const std::string& sentence) {
  base::print(stderr, "sluice bench: {}\n", sentence);
}

// 1, 2, 4, ... below the number of cores, and the number of cores.
std::vector<int> default_ranks() {
  const int cores = static_cast<int>(bootstrap::usable_cores().size());
  std::vector<int> ranks;
  for (int n = 1; n < cores; n *= 2) ranks.push_back(n);
  ranks.push_back(cores);
  return ranks;
}

// A file in memory that captures the output of the ranks.
base::Fd nameless_file() {
  base::Fd fd{memfd_create("sluice-bench", MFD_CLOEXEC)};
  if (!fd.open())
    throw Error{Status{Code::NoMemory,
                       base::format("cannot create a file in memory: {}", std::strerror(errno))}};
  return fd;
}

std::string content_of(const base::Fd& fd) {
  std::string text(static_cast<std::size_t>(lseek(fd.number(), 0, SEEK_END)), '\0');
  const ssize_t got = pread(fd.number(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

struct Measurement {
  double images_per_s = 0;
  int exit_status = kExitDone;  // not kExitDone if the training failed
};

// Trains for options.steps steps. `threads` per rank is the same for all rows, so that only the
// number of ranks and the batch differ.
Measurement measure(const Options& options, const ScalingRow& row, int threads) {
  TrainOptions train = options.train;
  train.set.insert(train.set.end(),
                   {base::format("batch={}", row.batch), "batch_phases=[]", "global_batch=0"});
  train.steps = options.steps;
  train.json = true;
  train.keep_nothing = true;
  if (!bootstrap::Environment::of_process().has(bootstrap::variable::kThreads))
    setenv(bootstrap::variable::kThreads.name.data(), std::to_string(threads).c_str(), 1);
  const base::Fd out = nameless_file();
  const base::Fd err = nameless_file();
  bootstrap::LaunchOptions launched{.ranks = row.ranks,
                                    .program = arguments_of_rank(train),
                                    .prefix = false,
                                    .out = out.number(),
                                    .err = err.number()};
  launched.program.insert(launched.program.begin(), train_program());
  const bootstrap::LaunchOutcome outcome = bootstrap::launch(launched).value();
  if (outcome.signal != 0) return {.exit_status = 128 + outcome.signal};
  if (!outcome.succeeded()) {
    base::print(stderr, "{}", content_of(err));
    if (outcome.first_failure)
      print_message(
          base::format("rank {} {}", outcome.first_failure->rank, outcome.first_failure->how));
    const bool input = outcome.first_failure && outcome.first_failure->status == kExitUsage;
    return {.exit_status = input ? kExitUsage : kExitMachine};
  }
  const auto summary = nlohmann::json::parse(content_of(out));
  return {.images_per_s = summary["images_per_s"]};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int run(const Options& options) {
  constexpr int kMostBatch = 1 << 20;
  if (options.scaling != "weak" && options.scaling != "strong") {
    base::refuse(
        base::format("--scaling must be weak or strong, not {}", base::quote(options.scaling)));
  }
  const bool strong = options.scaling == "strong";
  const std::vector<int> ranks =
      options.ranks.empty()
          ? default_ranks()
          : base::parse_list(options.ranks, 1, bootstrap::kMostLocalRanks, "--ranks").value();
  const TrainJob job = job_of(options.train);
  require_data(job);
  const std::vector<int> batches =
      options.batch.empty() ? std::vector<int>{job.recipe.batch}
                            : base::parse_list(options.batch, 1, kMostBatch, "--batch").value();
  (void)base::parse_integer(options.steps, 20, 1'000'000, "--steps").value();
  const auto repeats = base::parse_integer(options.repeats, 1, 1000, "--repeats").value();
  std::vector<ScalingRow> rows = scaling_rows(ranks, batches, strong);

  const auto cores = static_cast<int>(bootstrap::usable_cores().size());
  const int threads = std::max(1, cores / *std::max_element(ranks.begin(), ranks.end()));
  // Each round measures all rows, so that other load on the machine affects all rows alike.
  std::vector<std::vector<double>> speeds(rows.size());
  for (std::int64_t round = 0; round < repeats; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      base::print(stderr, "{}round {} of {}: {} ranks, batch {} per rank{}", line_start(),
                  round + 1, repeats, rows[i].ranks, rows[i].batch,
                  line_start().empty() ? "\n" : "");
      const Measurement measured = measure(options, rows[i], threads);
      base::print(stderr, "{}", line_start());
      if (measured.exit_status != kExitDone) return measured.exit_status;
      speeds[i].push_back(measured.images_per_s);
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].images_per_s = median(speeds[i]);
  set_efficiencies(rows, strong);
  if (options.train.json) {
    base::print("{}\n", scaling_json(rows).dump(2));
  } else {
    base::print("{}, {} on {}, {} scaling, {} per rank\n{}", job.recipe.name, job.recipe.model,
                job.data, options.scaling,
                threads == 1 ? "1 thread" : base::format("{} threads", threads),
                scaling_text(rows));
  }
  return kExitDone;
}

}  // namespace

void add_bench_train(CommandLine& bench, int& exit_status) {
  auto options = std::make_shared<Options>();
  CommandLine* const command =
      bench.add_subcommand("train", "Measure how training scales with ranks and batch size");
  command->add_option("--ranks", options->ranks,
                      "Numbers of ranks: 1,2,4 (default: 1, 2, 4, ... up to all cores)");
  command->add_option("--batch", options->batch,
                      "Batch sizes per rank: 8,16,32 (default: the recipe's)");
  command
      ->add_option("--scaling", options->scaling,
                   "weak: the same batch per rank in all rows;\n"
                   "strong: the same global batch, --batch * the smallest number of ranks")
      ->capture_default_str();
  command
      ->add_option("--steps", options->steps,
                   "Training steps per measurement; the first 10 do not count")
      ->capture_default_str();
  command
      ->add_option("--repeats", options->repeats,
                   "Measurements per row; the table shows their median")
      ->capture_default_str();
  command->add_option("--recipe", options->train.recipe, "As in 'sluice train' (default: demo)");
  command->add_option("--data", options->train.data, "As in 'sluice train'");
  command->add_option("--set", options->train.set, "KEY=VALUE, as in 'sluice train'; repeatable")
      ->one_value_each();
  command->add_flag("--json", options->train.json, "Print one JSON document");
  command->footer(
      "efficiency = t / (t0 * n): t is the images/s on n ranks, t0 the images/s of one rank, or\n"
      "per rank of the smallest number of ranks measured. The rows take turns, and every rank\n"
      "has the same number of threads in all rows.\n"
      "Examples:\n"
      "  sluice bench train\n"
      "  sluice bench train --ranks 1,2 --batch 8,16,32 --json\n"
      "  sluice bench train --ranks 1,2,4 --scaling strong --batch 64 --recipe cifar10 \\\n"
      "    --data cifar10:DIR");
  command->callback([options, &exit_status] {
    try {
      exit_status = run(*options);
    } catch (const Error& error) {
      const bool input =
          error.code() == Code::InvalidArgument || error.code() == Code::InvalidInput;
      if (input) throw;
      print_message(error.what());
      exit_status = kExitMachine;
    }
  });
}

}  // namespace sluice::cli
