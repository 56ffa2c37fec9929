// command.h - what the commands share: exit statuses and how a command is added.
//
// Results go to standard output, everything else to standard error. A command reports wrong usage
// or input by throwing Error; main() prints its sentence and exits with kExitUsage.
#pragma once

#include <CLI/CLI.hpp>

namespace sluice::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;       // it ran and the answer is no
inline constexpr int kExitUsage = 2;    // wrong usage or input
inline constexpr int kExitMachine = 3;  // a peer or the machine failed

// Each adds its command to the app; when it is the one given, it runs and leaves its exit status.
void add_train(CLI::App& app, int& exit_status);
void add_verify(CLI::App& app, int& exit_status);
void add_explain(CLI::App& app, int& exit_status);
void add_simulate(CLI::App& app, int& exit_status);
void add_reproduce(CLI::App& app, int& exit_status);
void add_launch(CLI::App& app, int& exit_status);
void add_bench(CLI::App& app, int& exit_status);
void add_data(CLI::App& app, int& exit_status);
void add_doctor(CLI::App& app, int& exit_status);

}  // namespace sluice::cli
