// command.h - the exit statuses and the list of commands.
//
// Results go to standard output, everything else to standard error. A command throws Error on wrong
// usage or input; main() prints its message and exits with kExitUsage.
#pragma once

#include "cli/command_line.h"

namespace sluice::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;       // the command ran, and the answer is no
inline constexpr int kExitUsage = 2;    // wrong usage or input
inline constexpr int kExitMachine = 3;  // a peer or the machine failed

// Each function adds one command to the program. The command stores its exit status when it has
// run.
void add_train(CommandLine& program, int& exit_status);
void add_verify(CommandLine& program, int& exit_status);
void add_explain(CommandLine& program, int& exit_status);
void add_simulate(CommandLine& program, int& exit_status);
void add_reproduce(CommandLine& program, int& exit_status);
void add_launch(CommandLine& program, int& exit_status);
void add_bench(CommandLine& program, int& exit_status);
void add_data(CommandLine& program, int& exit_status);
void add_doctor(CommandLine& program, int& exit_status);

}  // namespace sluice::cli
