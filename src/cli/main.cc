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

namespace {

int fail(const std::string& sentence) {
  sluice::base::print(stderr, "sluice: {}\n", sentence);
  return sluice::cli::kExitUsage;
}

// CLI11 only says that a word was not expected; this suggests the command that was meant.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::vector<std::string> held;
  for (const CLI::App* command : commands) held.push_back(command->get_name());
  const std::vector<std::string_view> names(held.begin(), held.end());
  const std::string first = argc > 1 ? argv[1] : "";
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (!known && !first.empty() && first[0] != '-') {
    const std::string_view nearest = sluice::base::nearest_name(first, names);
    return sluice::base::format(
        "there is no command {}: {}", sluice::base::quote(first),
        nearest.empty() ? sluice::base::format("choose from {}", sluice::base::join(names, ", "))
                        : sluice::base::format("did you mean {}?", nearest));
  }
  return sluice::base::format("{} (sluice{}{} --help shows examples)", error.what(),
                              known ? " " : "", known ? first : "");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Sluice trains neural networks data-parallel. It proves its collective algorithms correct,\n"
      "predicts their cost, and explains its choice.",
      "sluice"};
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(1);
  app.footer(
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
  sluice::cli::add_train(app, exit_status);
  sluice::cli::add_verify(app, exit_status);
  sluice::cli::add_explain(app, exit_status);
  sluice::cli::add_simulate(app, exit_status);
  sluice::cli::add_reproduce(app, exit_status);
  sluice::cli::add_launch(app, exit_status);
  sluice::cli::add_bench(app, exit_status);
  sluice::cli::add_data(app, exit_status);
  sluice::cli::add_doctor(app, exit_status);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return fail(usage_error(app, error, argc, argv));
  } catch (const sluice::Error& error) {
    return fail(error.what());
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
