// verify.cc - `sluice verify`: proves built-in schedules, or a schedule in a file.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "algorithms/schedule_file.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "sluice/algorithms.h"
#include "sluice/schedule.h"

namespace sluice::cli {
namespace {

struct Options {
  std::string algorithm = "all";
  std::string collective = "all";
  std::string ranks;
  std::string grid;
  std::string segments = "1,4";
  int root = 0;
  std::string file;
  bool json = false;
  bool list = false;
};

struct Row {
  std::string algorithm;
  Shape shape;
  Proof proof;
};

struct Task {
  const Algorithm* algorithm;
  Shape shape;
};

// A proof keeps every transfer in memory, a few hundred bytes each: about 3 GiB for this many.
constexpr std::int64_t kMostTransfers = std::int64_t{1} << 24;

std::vector<const Algorithm*> chosen_algorithms(const std::string& name) {
  if (name != "all") return {find_algorithm(name).value()};
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : built_in_algorithms()) all.push_back(&algorithm);
  return all;
}

// Adds the shape with each segment count. Skips a shape that does not suit unless `must_suit`.
void add_tasks(std::vector<Task>& tasks, const Algorithm& algorithm, Shape shape, bool must_suit,
               const std::vector<int>& segment_counts) {
  for (const int segments : segment_counts) {
    shape.segments = segments;
    Result<Shape> complete = complete_shape(algorithm, shape);
    if (!complete.ok() && !must_suit) return;
    tasks.push_back({&algorithm, complete.value()});
    if (!algorithm.uses_segments) return;
  }
}

std::vector<Task> tasks_of(const Options& options) {
  const auto segments = parse_segments(options.segments);
  const bool all_algorithms = options.algorithm == "all";
  const bool all_collectives = options.collective == "all";
  std::vector<Collective> collectives{kCollectives, std::end(kCollectives)};
  if (!all_collectives) collectives = {parse_collective(options.collective)};

  std::vector<Shape> shapes;
  std::vector<int> ranks;
  if (!options.ranks.empty())
    ranks = base::parse_list(options.ranks, 1, kMostRanks, "ranks").value();
  if (options.grid.empty()) {
    if (ranks.empty()) ranks = base::parse_list("1-64", 1, kMostRanks, "ranks").value();
    for (const int n : ranks) shapes.push_back({.ranks = n});
  } else {
    for (const std::vector<int>& grid : parse_grids(options.grid)) {
      int sum = 0;
      for (const int n : grid) sum += n;
      if (ranks.empty()) {
        shapes.push_back({.ranks = sum, .grid = grid});
      } else {
        for (const int n : ranks) shapes.push_back({.ranks = n, .grid = grid});
      }
    }
  }

  std::vector<Task> tasks;
  for (const Algorithm* algorithm : chosen_algorithms(options.algorithm)) {
    for (const Collective collective : collectives) {
      if (all_collectives && !algorithm->supports(collective)) continue;
      for (Shape shape : shapes) {
        shape.collective = collective;
        shape.root = options.root;
        // A grid that does not fit the ranks is an error, even where `all` would skip it.
        if (!shape.grid.empty()) {
          (void)complete_shape(*find_algorithm("hierarchical").value(),
                               {.ranks = shape.ranks, .grid = shape.grid})
              .value();
        }
        add_tasks(tasks, *algorithm, shape, !all_algorithms, segments);
      }
    }
  }
  if (tasks.empty()) {
    base::refuse("no algorithm does this: try another --collective or --grid");
  }
  return tasks;
}

void refuse_too_large(const Task& task) {
  const Program program = task.algorithm->program(task.shape, 0);
  std::int64_t sends = 0;
  for (int step = 0; step < program.steps(); ++step) sends += std::ssize(program.sends(step));
  if (sends * task.shape.ranks > kMostTransfers) {
    base::refuse(base::format(
        "{} with {} ranks has about {} transfers, more than the {} that a proof keeps in memory: "
        "ask for fewer ranks",
        task.algorithm->name, task.shape.ranks, sends * task.shape.ranks, kMostTransfers));
  }
}

// Shows the progress of a long proof on a terminal; silent otherwise.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_{total}, shown_{is_terminal(STDERR_FILENO)} {}
  ~Progress() {
    if (shown_) base::print(stderr, "{}", kClearLine);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(const Task& task) {
    const std::lock_guard lock{mutex_};
    ++done_;
    if (shown_) {
      base::print(stderr, "{}proved {} of {}: {} with {} ranks", kClearLine, done_, total_,
                  task.algorithm->name, task.shape.ranks);
    }
  }

 private:
  std::size_t total_;
  bool shown_;
  std::mutex mutex_;
  std::size_t done_ = 0;
};

std::vector<Row> prove_all(const std::vector<Task>& tasks) {
  for (const Task& task : tasks) refuse_too_large(task);
  std::vector<Row> rows(tasks.size());
  Progress progress{tasks.size()};
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::once_flag failed;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < tasks.size(); i = next++) {
        const Task& task = tasks[i];
        rows[i] = {std::string{task.algorithm->name}, task.shape,
                   prove(*task.algorithm, task.shape)};
        progress.advance(task);
      }
    } catch (...) {
      std::call_once(failed, [&] { failure = std::current_exception(); });
      next = tasks.size();
    }
  };
  // Large proofs run one at a time: two at once would need twice the memory.
  constexpr int kLarge = 512;
  const bool large = std::any_of(tasks.begin(), tasks.end(),
                                 [](const Task& task) { return task.shape.ranks > kLarge; });
  const std::size_t threads =
      large ? 1 : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < threads; ++i) workers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return rows;
}

Row prove_file(const std::string& path) {
  if (path != "-") {
    const Schedule schedule = algorithms::read_schedule_file(path).value();
    return {schedule.algorithm, schedule.shape, verify(schedule)};
  }
  const Result<Schedule> schedule = parse_schedule(std::cin);
  if (!schedule.ok()) {
    throw Error{Status{Code::InvalidInput,
                       base::format("standard input, {}", schedule.status().message())}};
  }
  return {schedule.value().algorithm, schedule.value().shape, verify(schedule.value())};
}

nlohmann::ordered_json to_json(const Row& row) {
  return {{"algorithm", row.algorithm},      {"collective", name(row.shape.collective)},
          {"ranks", row.shape.ranks},        {"grid", grid_json(row.shape.grid)},
          {"segments", row.shape.segments},  {"root", row.shape.root},
          {"proven", row.proof.proven},      {"reason", row.proof.reason},
          {"steps", row.proof.steps},        {"bytes_factor", row.proof.bytes_factor.value()},
          {"transfers", row.proof.transfers}};
}

std::string show_shape(const Row& row) {
  std::string text =
      base::format("{} {}, {} ranks", row.algorithm, name(row.shape.collective), row.shape.ranks);
  if (!row.shape.grid.empty()) text += base::format(", grid {}", show_grid(row.shape.grid));
  if (row.shape.segments != 1) text += base::format(", {} segments", row.shape.segments);
  return text;
}

// One line per shape, or one line per (algorithm, collective).
void print_table(const std::vector<Row>& rows, bool list) {
  if (list) {
    for (const Row& row : rows) {
      if (!row.proof.proven) continue;
      base::print("proven      {}: {} steps, the busiest rank sends {} of the buffer\n",
                  show_shape(row), row.proof.steps, to_string(row.proof.bytes_factor));
    }
  } else {
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t end = i;
      std::size_t proven = 0;
      int most_ranks = 0;
      for (; end < rows.size() && rows[end].algorithm == rows[i].algorithm &&
             rows[end].shape.collective == rows[i].shape.collective;
           ++end) {
        proven += rows[end].proof.proven ? 1 : 0;
        most_ranks = std::max(most_ranks, rows[end].shape.ranks);
      }
      base::print("{:<34} {:<15} {:>5} of {:>5} shapes proven, up to {} ranks\n", rows[i].algorithm,
                  name(rows[i].shape.collective), proven, end - i, most_ranks);
      i = end;
    }
  }
  for (const Row& row : rows) {
    if (!row.proof.proven) base::print("NOT PROVEN  {}: {}\n", show_shape(row), row.proof.reason);
  }
}

int run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Row> rows;
  if (!options.file.empty()) {
    rows.push_back(prove_file(options.file));
  } else if (algorithms::names_file(options.algorithm)) {
    rows.push_back(prove_file(algorithms::path_of_file(options.algorithm)));
  } else {
    rows = prove_all(tasks_of(options));
  }
  const auto failed =
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.proof.proven; });
  if (options.json) {
    auto json = nlohmann::ordered_json::array();
    for (const Row& row : rows) json.push_back(to_json(row));
    base::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    constexpr std::size_t kListed = 32;
    print_table(rows, options.list || rows.size() <= kListed);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    base::print("{} of {} schedules proven in {:.1f} s\n",
                rows.size() - static_cast<std::size_t>(failed), rows.size(), took.count());
  }
  return failed == 0 ? kExitDone : kExitNo;
}

}  // namespace

void add_verify(CommandLine& program, int& exit_status) {
  auto options = std::make_shared<Options>();
  CommandLine* const command =
      program.add_subcommand("verify", "Prove built-in schedules, or a schedule in a file");
  command->add_option("--algorithm", options->algorithm, "Name of an algorithm, file:PATH, or all")
      ->capture_default_str();
  command
      ->add_option("--collective", options->collective,
                   "all_reduce, reduce_scatter, all_gather, broadcast, reduce, or all")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks,
                      "Numbers of ranks: 1-64,96 (default: 1-64, or those of --grid)");
  command->add_option("--grid", options->grid,
                      "Ranks of the nodes: 4x8 (4 nodes of 8), 3+5, 1-16x1-16");
  command->add_option("--segments", options->segments, "Segments per tree, powers of two")
      ->capture_default_str();
  command->add_option("--root", options->root, "Root rank of broadcast and reduce")
      ->capture_default_str();
  auto* const file = command->add_option(
      "--file", options->file, "Prove the schedule in this text file (-: standard input)");
  for (const char* const other : {"--algorithm", "--collective", "--ranks", "--grid", "--root"}) {
    file->excludes(command->option(other));
  }
  command->add_flag("--list", options->list, "Print a line for every shape");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "Exit status: 0 all schedules are proven, 1 a schedule is not, 2 wrong usage or input.\n"
      "Examples:\n"
      "  sluice verify                                        all algorithms up to 64 ranks\n"
      "  sluice verify --algorithm ring --ranks 1024\n"
      "  sluice verify --algorithm hierarchical --grid 3+5\n"
      "  sluice explain --ranks 6 --bytes 1M --algorithm torus --schedule > torus.txt\n"
      "  sluice verify --file torus.txt");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace sluice::cli
