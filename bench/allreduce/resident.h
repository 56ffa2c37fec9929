// resident.h - a process that is measured in turn with others.
//
// The driver starts the processes of all contenders at once. Each pins itself, connects to the
// driver's socket, a path and so within reach of every network namespace, and sleeps there until an
// order comes; so who is not measured uses no processor time, and slices of all contenders take
// turns.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sluice/schedule.h"

namespace sluice::bench {

inline constexpr std::size_t kMostMessage = std::size_t{1} << 16;  // bytes of an order or an answer

struct ContenderArguments {
  std::string socket;
  std::string extra;
  Rank rank = 0;
  int ranks = 1;
};

// Carries out an order and says what came of it.
using Answer = std::function<std::string(std::string_view order)>;
using MakeAnswer = std::function<Answer(const ContenderArguments&)>;

// main() of such a process, called as PROGRAM SOCKET EXTRA [RANK RANKS]; under mpirun the rank
// comes from the environment. Answers until the driver hangs up; returns the exit status.
int resident_main(int argc, char** argv, const MakeAnswer& make);

}  // namespace sluice::bench
