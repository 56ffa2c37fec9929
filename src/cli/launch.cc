// launch.cc - `sluice launch`: starts the ranks of any program on this machine; run once on each of
// several machines it starts one job on all of them.
#include "bootstrap/launch/launch.h"

#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/placement.h"
#include "cli/arguments.h"
#include "cli/command.h"

namespace sluice::cli {
namespace {

constexpr int kMostRestarts = 1'000'000;

struct Options {
  std::string ranks;
  std::string hosts;
  std::string host;
  std::string master;
  std::string token_file;
  std::string deadline;
  std::string max_restarts = "0";
  bool no_prefix = false;
  bool no_bind = false;
  std::vector<std::string> program;
};

void say(const std::string& sentence) { base::print(stderr, "sluice launch: {}\n", sentence); }

int report(const bootstrap::LaunchOptions& options, const bootstrap::LaunchOutcome& outcome) {
  if (outcome.first_failure) {
    const bootstrap::LaunchOutcome::Failure& failure = *outcome.first_failure;
    const bool silent = failure.last_lines.empty();
    // What other hosts' ranks did is for their launchers to say.
    const char* const whose = options.hosts == 1 ? "" : "this host's ";
    const std::string restarts =
        outcome.restarts == 0 ? "" : base::format(" (after {} restarts)", outcome.restarts);
    say(base::format("of {}{} ranks, rank {} failed first: it {}{}{}", whose, options.ranks,
                     failure.rank, failure.how, restarts,
                     silent ? " and wrote no error" : "; the last it wrote to standard error:"));
    for (const std::string& line : failure.last_lines) base::print(stderr, "  {}\n", line);
  }
  if (outcome.out_of_time) {
    say(base::format(
        "not all ranks had ended within {}, so they were stopped",
        base::format_seconds(std::chrono::duration<double>{*options.deadline}.count())));
  }
  if (outcome.output_lost)
    say("standard output or standard error cannot be written, so the ranks were stopped");
  if (outcome.signal != 0) return 128 + outcome.signal;
  return outcome.succeeded() ? kExitDone : kExitMachine;
}

void read_hosts(const Options& options, bootstrap::LaunchOptions& launched) {
  const int given = (options.hosts.empty() ? 0 : 1) + (options.host.empty() ? 0 : 1) +
                    (options.master.empty() ? 0 : 1);
  if (given != 0 && given != 3) {
    throw Error{Status{Code::InvalidArgument,
                       "--hosts, --host and --master go together: how many hosts, which of them "
                       "this is, and where host 0 can be called"}};
  }
  if (!options.token_file.empty())
    launched.token = bootstrap::token_of_file(options.token_file).value();
  if (given == 0) return;
  launched.hosts =
      static_cast<int>(base::parse_whole(options.hosts, 1, kMostRanks, "--hosts").value());
  launched.host =
      static_cast<int>(base::parse_whole(options.host, 0, launched.hosts - 1, "--host").value());
  HostAndPort master = parse_host_and_port(options.master);
  launched.master = std::move(master.host);
  launched.port = master.port;
  if (launched.token.empty())
    launched.token =
        bootstrap::given_token(bootstrap::Environment::of_process()).value().value_or("");
}

int run(const Options& options) {
  bootstrap::LaunchOptions launched{
      .ranks = static_cast<int>(
          base::parse_whole(options.ranks, 1, bootstrap::kMostLocalRanks, "ranks").value()),
      .program = options.program,
      .prefix = !options.no_prefix,
      .bind = !options.no_bind,
      .max_restarts = static_cast<int>(
          base::parse_whole(options.max_restarts, 0, kMostRestarts, "--max-restarts").value()),
      .report = say};
  if (!options.deadline.empty()) launched.deadline = parse_duration(options.deadline);
  if (options.program.empty()) {
    throw Error{Status{Code::InvalidArgument,
                       "there is no program to launch: give it after --, as in "
                       "'sluice launch -n 4 -- ./train'"}};
  }
  read_hosts(options, launched);
  if (launched.hosts > 1 && launched.host == 0 && launched.token.empty()) {
    say(
        base::format("any process that reaches {} can join this job: set SLUICE_TOKEN to the same "
                     "secret on all hosts, or give all a --token-file",
                     options.master));
  }
  const auto outcome = bootstrap::launch(launched);
  if (!outcome.ok() && outcome.status().code() != Code::InvalidArgument) {
    say(outcome.status().message());
    return kExitMachine;
  }
  return report(launched, outcome.value());
}

}  // namespace

void add_launch(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "launch", "Start the ranks of a program on this machine, or its share of several");
  command
      ->add_option("-n,--ranks", options->ranks,
                   base::format("How many, 1 to {}", bootstrap::kMostLocalRanks))
      ->required();
  command->add_option("--hosts", options->hosts,
                      "Of a job on several machines: how many; each runs this once, with the same "
                      "number of ranks");
  command->add_option("--host", options->host, "Which of them this is, from 0");
  command->add_option("--master", options->master,
                      "ADDR:PORT where host 0 can be called; the same text on every host");
  command->add_option("--token-file", options->token_file,
                      "A file whose first line only the job's ranks know; else SLUICE_TOKEN");
  command->add_option("--deadline", options->deadline,
                      "Stop all ranks after that time: 90, 30s, 5m, 2h");
  command->add_option("--max-restarts", options->max_restarts,
                      "Start all ranks again after a failure, so many times (default: 0)");
  command->add_flag("--no-prefix", options->no_prefix,
                    "Lines as they are, without [rank] in front");
  command->add_flag("--no-bind", options->no_bind,
                    "Leave every rank all cores, not its share of them");
  command->add_option("PROGRAM", options->program, "The program and its arguments, after --");
  command->footer(
      "Each rank finds SLUICE_RANK, SLUICE_RANKS, SLUICE_JOB and more in its environment, and\n"
      "OMP_NUM_THREADS unless you set it: cores / ranks. Output is passed on in whole lines. Rank "
      "0\n"
      "has the standard input, unless that is a terminal. When a rank fails, the others get "
      "SIGTERM,\n"
      "and SIGKILL 5 s later. SIGINT, SIGTERM and SIGHUP are passed on; a second one kills.\n"
      "With --max-restarts all ranks are then started again and find SLUICE_RESTARTS to be 1, 2, "
      "...;"
      "\n"
      "not after exit status 2 (wrong input stays wrong), nor when this command was told to end.\n"
      "Exit status: 0 all ranks ended well, 2 wrong usage or no such program, 3 a rank failed (it "
      "says\n"
      "which was first), 128 + signal when stopped by one.\n"
      "Examples:\n"
      "  sluice launch -n 4 -- ./train --epochs 90\n"
      "  sluice launch -n 8 --hosts 2 --host 0 --master 10.0.0.1:29500 -- ./train    (on "
      "10.0.0.1)\n"
      "  sluice launch -n 8 --hosts 2 --host 1 --master 10.0.0.1:29500 -- ./train    (on another)\n"
      "  sluice launch -n 2 --deadline 10m --no-prefix -- bash -c 'echo rank $SLUICE_RANK'");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace sluice::cli
