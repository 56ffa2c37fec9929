// worker.h - a process of a benchmark that answers requests of the driver.
//
// The driver starts the workers of all contenders at once. Each worker pins itself to a core,
// connects to the driver's Unix socket, which every network namespace can reach, and sleeps until a
// request arrives. So a worker that is not measured uses no processor time, and the contenders can
// take turns.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sluice/schedule.h"

namespace sluice::bench {

inline constexpr std::size_t kMostMessage = std::size_t{1} << 16;  // bytes of a request or reply

struct WorkerArguments {
  std::string socket;
  std::string extra;
  Rank rank = 0;
  int ranks = 1;
};

// Carries out a request and returns the reply.
using RequestHandler = std::function<std::string(std::string_view request)>;
using MakeRequestHandler = std::function<RequestHandler(const WorkerArguments&)>;

// The main() of a worker, started as PROGRAM SOCKET EXTRA [RANK RANKS]; under mpirun the rank comes
// from the environment. Serves requests until the driver closes the socket; returns the exit
// status.
int worker_main(int argc, char** argv, const MakeRequestHandler& make);

}  // namespace sluice::bench
