// bench.cc - `sluice bench allreduce`: times all-reduces on this machine and checks their results.

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/schedule_file.h"
#include "base/format.h"
#include "base/text.h"
#include "bootstrap/environment.h"
#include "bootstrap/host.h"
#include "bootstrap/launch/launch.h"
#include "bootstrap/placement.h"
#include "cli/arguments.h"
#include "cli/bench/bench_allreduce.h"
#include "cli/bench/scaling.h"
#include "cli/command.h"
#include "sluice/algorithms.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::cli {
namespace {

struct Options {
  std::string ranks;
  std::string transport = "shm";
  std::string algorithm;
  std::string sizes = "1K:256M";
  std::string type = "f32";
  std::string op = "sum";
  std::string iterations;
  bool foreign = false;
  bool json = false;
  bool as_rank = false;  // this process is a rank that the command has started
};

void print_message(const std::string& sentence) {
  base::print(stderr, "sluice bench: {}\n", sentence);
}

template <class T, std::size_t N>
T named(const std::string& text, const T (&all)[N], std::string_view what) {
  std::vector<std::string_view> names;
  for (const T each : all) {
    if (name(each) == text) return each;
    names.push_back(name(each));
  }
  base::refuse(base::format("there is no {} {}: choose from {}", what, base::quote(text),
                            base::join(names, ", ")));
}

int ranks_of(const Options& options) {
  if (options.ranks.empty()) return std::max(2, static_cast<int>(bootstrap::usable_cores().size()));
  return static_cast<int>(
      base::parse_integer(options.ranks, 2, bootstrap::kMostLocalRanks, "--ranks").value());
}

AllReduceBench bench_of(const Options& options, int ranks) {
  constexpr DataType kTypes[] = {DataType::F32,  DataType::F64, DataType::F16,
                                 DataType::BF16, DataType::I32, DataType::I64};
  constexpr ReduceOp kOps[] = {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Min, ReduceOp::Max};
  AllReduceBench bench{.type = named(options.type, kTypes, "type"),
                       .op = named(options.op, kOps, "operation"),
                       .algorithm = options.algorithm,
                       .foreign = options.foreign};
  bench.sizes = parse_sizes(options.sizes, size_of(bench.type));
  if (!options.iterations.empty()) {
    bench.iterations = static_cast<int>(
        base::parse_integer(options.iterations, 1, 1'000'000, "--iterations").value());
  }
  if (!options.algorithm.empty()) {
    const Algorithm& algorithm = *find_algorithm(options.algorithm).value();
    (void)complete_shape(algorithm, {.collective = Collective::AllReduce, .ranks = ranks}).value();
  }
  return bench;
}

// The output of rank 0: a table row by row, or one JSON document at the end.
class Report {
 public:
  Report(const Options& options, int ranks) : json_{options.json} {
    if (json_) return;
    base::print("all_reduce, {} {}, {} ranks, {}, {} memory\n", options.op, options.type, ranks,
                options.transport, options.foreign ? "foreign" : "pooled");
    base::print("{:>10}  {:<20} {:>11} {:>11} {:>9} {:>9}\n", "size", "algorithm", "p50 us",
                "p99 us", "alg GB/s", "bus GB/s");
    std::fflush(stdout);
  }

  void add(const AllReduceRow& row) {
    if (!json_) {
      base::print("{:>10}  {:<20} {:>11.2f} {:>11.2f} {:>9.3f} {:>9.3f}  {}\n",
                  base::format_bytes(static_cast<double>(row.bytes)), row.algorithm, row.p50_us,
                  row.p99_us, row.algbw_gbps, row.busbw_gbps, row.verified ? "right" : "WRONG");
      std::fflush(stdout);
      return;
    }
    document_.push_back({{"bytes", row.bytes},
                         {"algorithm", row.algorithm},
                         {"p50_us", row.p50_us},
                         {"p99_us", row.p99_us},
                         {"algbw_gbps", row.algbw_gbps},
                         {"busbw_gbps", row.busbw_gbps},
                         {"verified", row.verified}});
  }

  void finish() const {
    if (json_) base::print("{}\n", document_.dump(2));
    std::fflush(stdout);
  }

 private:
  bool json_;
  nlohmann::ordered_json document_ = nlohmann::ordered_json::array();
};

// Runs one rank. Returns whether the results of all ranks were correct.
bool run_rank(Communicator& comm, const Options& options) {
  const AllReduceBench bench = bench_of(options, comm.size());
  std::optional<Report> report;
  if (comm.rank() == 0) report.emplace(options, comm.size());
  bool right = true;
  const auto take = [&](const AllReduceRow& row) {
    right = right && row.verified;
    if (report) report->add(row);
  };
  bench_all_reduce(comm, bench, take, print_message);
  if (report) report->finish();
  comm.barrier();  // a rank that ends stops the others, so wait until rank 0 has printed
  return right;
}

int run_threads(const Options& options, int ranks) {
  std::vector<Communicator> comms = Communicator::in_process(ranks);
  const std::vector<int> cores = bootstrap::usable_cores();
  std::mutex mutex;
  std::exception_ptr failure;
  bool right = true;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back(
          [&, rank, comm = std::move(comms[static_cast<std::size_t>(rank)])]() mutable {
            bootstrap::pin_to(bootstrap::share_of_cores(cores, ranks, rank));
            try {
              const bool mine = run_rank(comm, options);
              const std::lock_guard lock{mutex};
              right = right && mine;
            } catch (...) {
              const std::lock_guard lock{mutex};
              if (!failure) failure = std::current_exception();
            }
          });
    }
  }
  if (failure) std::rethrow_exception(failure);
  return right ? kExitDone : kExitNo;
}

int run_processes(const Options& options, int ranks) {
  std::vector<std::string> program{std::filesystem::read_symlink("/proc/self/exe").string(),
                                   "bench",
                                   "allreduce",
                                   "--as-rank",
                                   "--transport",
                                   options.transport,
                                   "--sizes",
                                   options.sizes,
                                   "--type",
                                   options.type,
                                   "--op",
                                   options.op};
  if (!options.algorithm.empty()) program.insert(program.end(), {"--algorithm", options.algorithm});
  if (!options.iterations.empty())
    program.insert(program.end(), {"--iterations", options.iterations});
  if (options.foreign) program.emplace_back("--foreign");
  if (options.json) program.emplace_back("--json");
  const bootstrap::LaunchOutcome outcome =
      bootstrap::launch({.ranks = ranks, .program = program, .prefix = false}).value();
  if (outcome.signal != 0) return 128 + outcome.signal;
  if (outcome.first_failure) {
    // The rank has already reported its wrong result.
    if (outcome.first_failure->status == kExitNo) return kExitNo;
    print_message(
        base::format("rank {} {}", outcome.first_failure->rank, outcome.first_failure->how));
  }
  return outcome.succeeded() ? kExitDone : kExitMachine;
}

// Makes every rank a node of its own on the loopback interface.
void simulate_hosts() {
  const base::Fd free = transport::listen_at(*transport::SocketAddress::numeric("127.0.0.1", 0));
  const std::string port =
      std::to_string(transport::SocketAddress::of_socket(free.number()).port());
  setenv(bootstrap::variable::kMasterAddress.name.data(), "127.0.0.1", 1);
  setenv(bootstrap::variable::kPort.name.data(), port.c_str(), 1);
  setenv(bootstrap::variable::kTransport.name.data(), "tcp", 1);
}

// The number of ranks that a launcher started; 1 without a launcher.
int launched_ranks() {
  return bootstrap::placement_of(bootstrap::Environment::of_process()).value().ranks;
}

Communicator join(const Options& options) {
  if (options.as_rank && options.transport == "tcp") {
    const Rank rank = bootstrap::placement_of(bootstrap::Environment::of_process()).value().rank;
    setenv(bootstrap::variable::kNode.name.data(), std::to_string(rank).c_str(), 1);
  }
  return Communicator::from_env();
}

int run(const Options& options) {
  if (options.transport != "shm" && options.transport != "inproc" && options.transport != "tcp") {
    base::refuse(
        base::format("there is no transport {}: choose from shm, inproc, tcp (for MPI, run "
                     "'mpirun -n 4 sluice bench allreduce')",
                     base::quote(options.transport)));
  }
  const int launched = launched_ranks();
  const bool is_rank = options.as_rank || launched > 1;
  if (is_rank && !options.as_rank && !options.ranks.empty()) {
    base::refuse(base::format(
        "a launcher has started this process as one of {} ranks: leave out --ranks", launched));
  }
  const int ranks = is_rank ? launched : ranks_of(options);
  const AllReduceBench bench = bench_of(options, ranks);  // checks the options
  if (!is_rank) {
    const auto largest = *std::max_element(bench.sizes.begin(), bench.sizes.end());
    // Ordinary memory is copied to memory that peers can read.
    require_memory(static_cast<double>(largest) * ranks * (bench.foreign ? 2 : 1));
    if (algorithms::names_file(options.algorithm))
      require_proof(*find_algorithm(options.algorithm).value());
  }
  try {
    if (is_rank) {
      Communicator comm = join(options);
      return run_rank(comm, options) ? kExitDone : kExitNo;
    }
    if (options.transport == "tcp") simulate_hosts();
    return options.transport == "inproc" ? run_threads(options, ranks)
                                         : run_processes(options, ranks);
  } catch (const Error& error) {
    print_message(error.what());
    return kExitMachine;
  }
}

}  // namespace

void add_bench(CommandLine& program, int& exit_status) {
  auto options = std::make_shared<Options>();
  CommandLine* const bench =
      program.add_subcommand("bench", "Measure collectives and training on this machine");
  bench->require_subcommand();
  bench->footer(
      "Examples:\n"
      "  sluice bench allreduce --help\n"
      "  sluice bench train --help");
  add_bench_train(*bench, exit_status);
  CommandLine* const command =
      bench->add_subcommand("allreduce", "Measure all-reduces of many sizes and check the results");
  command->add_option(
      "--ranks", options->ranks,
      base::format("Number of ranks, 2 to {} (default: one per core)", bootstrap::kMostLocalRanks));
  command
      ->add_option("--transport", options->transport,
                   "shm: processes with shared memory; inproc: threads of one process;\n"
                   "tcp: processes that talk over the loopback interface, as between hosts")
      ->capture_default_str();
  command->add_option("--algorithm", options->algorithm,
                      "Name of an algorithm, or file:PATH (default: chosen by size)");
  command
      ->add_option("--sizes", options->sizes,
                   "FIRST:LAST: doublings from FIRST to LAST; or a list: 4K,1M")
      ->capture_default_str();
  command
      ->add_option("--type,--wire", options->type,
                   "Type of the elements: f32, f64, f16, bf16, i32 or i64")
      ->capture_default_str();
  command->add_option("--op", options->op, "sum, mean, min or max")->capture_default_str();
  command->add_flag("--foreign", options->foreign,
                    "Use ordinary memory instead of a pool of the communicator");
  command->add_option("--iterations", options->iterations,
                      "Timed operations per size (default: 20 to 1000, depending on size)");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->add_flag("--as-rank", options->as_rank)->hidden();
  command->footer(
      "p50 and p99 are percentiles of the time of one operation (the mean over ranks).\n"
      "alg GB/s = size / p50, bus GB/s = alg GB/s * 2(n-1)/n for n ranks; 1 GB = 10^9 bytes.\n"
      "Every element of every result is checked.\n"
      "Exit status: 0 all results correct, 1 a result was wrong, 2 wrong usage, 3 a rank or the\n"
      "machine failed.\n"
      "Examples:\n"
      "  sluice bench allreduce\n"
      "  sluice bench allreduce --ranks 4 --algorithm ring --sizes 1M:64M --type bf16\n"
      "  sluice bench allreduce --transport inproc --sizes 4,4K --json\n"
      "On several hosts, or under mpirun, start it with the launcher and without --ranks:\n"
      "  sluice launch -n 1 --hosts 2 --host 0 --master a:29501 -- sluice bench allreduce\n"
      "  mpirun -n 4 sluice bench allreduce");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace sluice::cli
