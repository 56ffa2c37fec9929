// main.cc - the command sluice: runs the given subcommand and returns its exit status.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "cli/command.h"
#include "sluice/status.h"
#include "sluice/version.h"

namespace sluice::cli {
namespace {

int fail(const std::string& sentence) {
  base::print(stderr, "sluice: {}\n", sentence);
  return kExitUsage;
}

// The error only says that a word was not expected; this suggests the command that was meant.
std::string usage_error(const CommandLine& program, const UsageError& error, int argc,
                        char** argv) {
  const std::vector<std::string> commands = program.subcommands();
  const std::vector<std::string_view> names(commands.begin(), commands.end());
  const std::string first = argc > 1 ? argv[1] : "";
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (!known && !first.empty() && first[0] != '-') {
    const std::string_view nearest = base::nearest_name(first, names);
    return base::format("there is no command {}: {}", base::quote(first),
                        nearest.empty() ? base::format("choose from {}", base::join(names, ", "))
                                        : base::format("did you mean {}?", nearest));
  }
  return base::format("{} (sluice{}{} --help shows examples)", error.what(), known ? " " : "",
                      known ? first : "");
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::cli::CommandLine program{
      "Sluice trains neural networks data-parallel. It proves its collective algorithms correct,\n"
      "predicts their cost, and explains its choice.",
      "sluice"};
  program.set_version("sluice " SLUICE_VERSION);
  program.require_subcommand();
  program.footer(
      "Examples:\n"
      "  sluice train                             train the built-in demo on this machine\n"
      "  sluice bench allreduce                   measure all-reduces on this machine\n"
      "  sluice launch -n 4 -- ./train            start 4 ranks of a program on this machine\n"
      "  sluice data pack photos photos.pack      write images as one file, for fast training\n"
      "  sluice verify                            prove all built-in schedules up to 64 ranks\n"
      "  sluice explain --ranks 2048 --bytes 51M  show which algorithm is chosen, and why\n"
      "  sluice doctor                            list what Sluice found on this machine\n"
      "'sluice COMMAND --help' shows the options of a command and more examples.");
  int exit_status = sluice::cli::kExitDone;
  sluice::cli::add_train(program, exit_status);
  sluice::cli::add_verify(program, exit_status);
  sluice::cli::add_explain(program, exit_status);
  sluice::cli::add_simulate(program, exit_status);
  sluice::cli::add_reproduce(program, exit_status);
  sluice::cli::add_launch(program, exit_status);
  sluice::cli::add_bench(program, exit_status);
  sluice::cli::add_data(program, exit_status);
  sluice::cli::add_doctor(program, exit_status);

  try {
    program.parse(argc, argv);
  } catch (const sluice::cli::UsageError& error) {
    return sluice::cli::fail(sluice::cli::usage_error(program, error, argc, argv));
  } catch (const sluice::Error& error) {
    return sluice::cli::fail(error.what());
  } catch (const std::bad_alloc&) {
    sluice::base::print(stderr, "sluice: out of memory: use fewer ranks\n");
    return sluice::cli::kExitMachine;
  } catch (const std::exception& error) {
    sluice::base::print(stderr, "sluice: {}\n", error.what());
    return sluice::cli::kExitMachine;
  }
  if (std::fflush(stdout) != 0) {
    sluice::base::print(stderr, "sluice: cannot write to standard output\n");
    return sluice::cli::kExitMachine;
  }
  return exit_status;
}
