// launch.cc - `sluice launch`: starts the ranks of any program on this machine. Run it once on each
// machine to start one job on several machines.
#include "bootstrap/launch/launch.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
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

void print_message(const std::string& sentence) {
  base::print(stderr, "sluice launch: {}\n", sentence);
}

int report(const bootstrap::LaunchOptions& options, const bootstrap::LaunchOutcome& outcome) {
  if (outcome.first_failure) {
    const bootstrap::LaunchOutcome::Failure& failure = *outcome.first_failure;
    const std::string whose =
        failure.culprit ? base::format("rank {}'s", failure.rank) : std::string{"its"};
    const std::string last_lines = failure.last_lines.empty()
                                       ? (failure.culprit ? "" : " and wrote no error")
                                       : base::format("; {} last lines on standard error:", whose);
    // Each launcher reports only the ranks of its own host.
    const char* const owner = options.hosts == 1 ? "" : "this host's ";
    const std::string restarts =
        outcome.restarts == 0 ? "" : base::format(" (after {} restarts)", outcome.restarts);
    print_message(base::format("of {}{} ranks, {}{}{}", owner, options.ranks, describe(failure),
                               restarts, last_lines));
    for (const std::string& line : failure.last_lines) base::print(stderr, "  {}\n", line);
  }
  if (outcome.out_of_time) {
    print_message(base::format(
        "some ranks were still running after {}; stopped all ranks",
        base::format_seconds(std::chrono::duration<double>{*options.deadline}.count())));
  }
  if (outcome.output_lost)
    print_message("cannot write to standard output or standard error; stopped all ranks");
  if (outcome.signal != 0) return 128 + outcome.signal;
  return outcome.succeeded() ? kExitDone : kExitMachine;
}

void read_hosts(const Options& options, bootstrap::LaunchOptions& launched) {
  const int given = (options.hosts.empty() ? 0 : 1) + (options.host.empty() ? 0 : 1) +
                    (options.master.empty() ? 0 : 1);
  if (given != 0 && given != 3) {
    base::refuse(
        "give --hosts, --host and --master together: the number of hosts, the index of this host "
        "and the address of host 0");
  }
  if (!options.token_file.empty())
    launched.token = bootstrap::read_token_file(options.token_file).value();
  if (given == 0) return;
  launched.hosts =
      static_cast<int>(base::parse_integer(options.hosts, 1, kMostRanks, "--hosts").value());
  launched.host =
      static_cast<int>(base::parse_integer(options.host, 0, launched.hosts - 1, "--host").value());
  HostAndPort master = parse_host_and_port(options.master);
  launched.master = std::move(master.host);
  launched.port = master.port;
  if (launched.token.empty())
    launched.token =
        bootstrap::given_token(bootstrap::Environment::of_process()).value().value_or("");
}

// A word of a shell's command line that means this text.
std::string shell_word(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view{"-_./:,=+@%"}.find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return quoted + "'";
}

// The line that starts another host of the job, with the token.
std::string line_for_host(int host, const Options& options, const std::string& token) {
  std::vector<std::string> words{program_invocation_name,
                                 "launch",
                                 "-n",
                                 options.ranks,
                                 "--hosts",
                                 options.hosts,
                                 "--host",
                                 std::to_string(host),
                                 "--master",
                                 options.master};
  if (!options.deadline.empty()) words.insert(words.end(), {"--deadline", options.deadline});
  if (options.max_restarts != "0")
    words.insert(words.end(), {"--max-restarts", options.max_restarts});
  if (options.no_prefix) words.emplace_back("--no-prefix");
  if (options.no_bind) words.emplace_back("--no-bind");
  words.emplace_back("--");
  words.insert(words.end(), options.program.begin(), options.program.end());
  std::string line = base::format("{}={}", bootstrap::variable::kToken.name, token);
  for (const std::string& word : words) line += " " + shell_word(word);
  return line;
}

// Host 0 of a job without a token makes one, and says how to start the other hosts with it.
void make_token(const Options& options, bootstrap::LaunchOptions& launched) {
  constexpr int kMostLines = 8;
  launched.token = bootstrap::random_token();
  const int shown = std::min(launched.hosts - 1, kMostLines);
  for (int host = 1; host <= shown; ++host)
    print_message(
        base::format("on host {} run: {}", host, line_for_host(host, options, launched.token)));
  if (shown < launched.hosts - 1)
    print_message(base::format("and likewise with --host {} to {}", shown + 1, launched.hosts - 1));
}

int run(const Options& options) {
  bootstrap::LaunchOptions launched{
      .ranks = static_cast<int>(
          base::parse_integer(options.ranks, 1, bootstrap::kMostLocalRanks, "ranks").value()),
      .program = options.program,
      .prefix = !options.no_prefix,
      .bind = !options.no_bind,
      .max_restarts = static_cast<int>(
          base::parse_integer(options.max_restarts, 0, kMostRestarts, "--max-restarts").value()),
      .report = print_message};
  if (!options.deadline.empty()) launched.deadline = parse_duration(options.deadline);
  if (options.program.empty()) {
    base::refuse("no program to launch: give it after --, as in 'sluice launch -n 4 -- ./train'");
  }
  read_hosts(options, launched);
  if (launched.hosts > 1 && launched.host == 0 && launched.token.empty()) {
    if (bootstrap::is_open_to_others(launched)) {
      make_token(options, launched);
    } else {
      print_message(
          base::format("warning: any process that can connect to {} can join this job: set "
                       "SLUICE_TOKEN to the same secret on all hosts, or give each a --token-file",
                       options.master));
    }
  }
  const auto outcome = bootstrap::launch(launched);
  if (!outcome.ok() && outcome.status().code() != Code::InvalidArgument) {
    print_message(outcome.status().message());
    return kExitMachine;
  }
  return report(launched, outcome.value());
}

}  // namespace

void add_launch(CommandLine& program, int& exit_status) {
  auto options = std::make_shared<Options>();
  CommandLine* const command = program.add_subcommand(
      "launch", "Start the ranks of a program on this machine or on several machines");
  command
      ->add_option(
          "-n,--ranks", options->ranks,
          base::format("Number of ranks on this machine, 1 to {}", bootstrap::kMostLocalRanks))
      ->required();
  command->add_option("--hosts", options->hosts,
                      "Number of machines of the job; run this command once on each machine,\n"
                      "with the same --ranks");
  command->add_option("--host", options->host, "Index of this machine, from 0");
  command->add_option("--master", options->master,
                      "ADDR:PORT of host 0; the same text on every host");
  command->add_option("--token-file", options->token_file,
                      "A file whose first line is a secret that all hosts share\n"
                      "(default: the environment variable SLUICE_TOKEN, else host 0 makes one)");
  command->add_option("--deadline", options->deadline,
                      "Stop all ranks after this time: 90, 30s, 5m, 2h");
  command->add_option("--max-restarts", options->max_restarts,
                      "Restart all ranks after a failure, at most this many times (default: 0)");
  command->add_flag("--no-prefix", options->no_prefix,
                    "Do not print [rank] in front of each line of output");
  command->add_flag("--no-bind", options->no_bind,
                    "Let every rank use all cores instead of its share of them");
  command->add_option("PROGRAM", options->program, "The program and its arguments, after --");
  command->footer(
      "The environment of each rank has SLUICE_RANK, SLUICE_RANKS, SLUICE_JOB and more, and\n"
      "OMP_NUM_THREADS = cores / ranks unless you set it. Output is passed on in whole lines.\n"
      "Rank 0 reads standard input, unless that is a terminal.\n"
      "When a rank fails, all other ranks get SIGTERM, and SIGKILL 5 s later. The launcher passes\n"
      "SIGINT, SIGTERM and SIGHUP on to the ranks; a second signal kills them.\n"
      "With --max-restarts the launcher then restarts all ranks, with SLUICE_RESTARTS = 1, 2, ...\n"
      "It does not after exit status 2 (wrong input) or after a signal to the launcher.\n"
      "Exit status: 0 all ranks succeeded, 2 wrong usage or no such program, 3 a rank failed (the\n"
      "launcher names the first one), 128 + N stopped by signal N.\n"
      "Examples:\n"
      "  sluice launch -n 4 -- ./train --epochs 90\n"
      "  sluice launch -n 2 --deadline 10m --no-prefix -- bash -c 'echo rank $SLUICE_RANK'\n"
      "On two machines, the first of which is 10.0.0.1, host 0 prints the line for host 1:\n"
      "  sluice launch -n 8 --hosts 2 --host 0 --master 10.0.0.1:29500 -- ./train\n"
      "  SLUICE_TOKEN=... sluice launch -n 8 --hosts 2 --host 1 --master 10.0.0.1:29500 -- "
      "./train");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace sluice::cli
