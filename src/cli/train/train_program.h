// train_program.h - the program that one rank of `sluice train` is.
//
// libtorch takes most of a second to load, and so the command does not: ranks are a program of
// their own, sluice-train, beside it.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// Its path. Throws Error where this build has none.
std::string train_program();

// This process becomes a rank: the program with these arguments. Throws Error, or does not return.
[[noreturn]] void become_train_program(std::vector<std::string> arguments);

}  // namespace sluice::cli
