// train_rank_main.cc - sluice-train: one rank of `sluice train`, which starts it. It has the
// options of that command and is told its place by a launcher's variables.

#include <exception>
#include <new>

#include "base/format.h"
#include "cli/command.h"
#include "cli/train/train_options.h"
#include "cli/train/train_rank.h"

int main(int argc, char** argv) {
  CLI::App app{"One rank of a training; 'sluice train' starts as many as it takes.",
               "sluice-train"};
  sluice::cli::TrainOptions options;
  sluice::cli::add_train_options(app, options);
  try {
    app.parse(argc, argv);
    return sluice::cli::run_train_rank(options);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help
  } catch (const CLI::ParseError& error) {
    sluice::base::print(stderr, "sluice: {}\n", error.what());
    return sluice::cli::kExitUsage;
  } catch (const std::bad_alloc&) {
    sluice::base::print(
        stderr, "sluice train: there is no more memory: take a smaller batch or fewer ranks\n");
  } catch (const std::exception& error) {
    sluice::base::print(stderr, "sluice train: {}\n", error.what());
  }
  return sluice::cli::kExitMachine;
}
