// mpi.h - ranks on other nodes through MPI, where Sluice was built with it.
//
// The first call here initialises MPI unless the program has done so. If Sluice initialised MPI, it
// finalises MPI at the end of the process, provided that no network is left and nothing failed:
// MPI_Finalize waits for every rank, dead ones included. MPI cannot be initialised twice, so it
// outlives the last network.
//
// Thread-safety: one thread at a time may call these functions or an MPI network. A program that
// calls MPI itself at the same time must initialise it with MPI_THREAD_MULTIPLE.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/network.h"

namespace sluice::transport {

bool has_mpi();
// The library and its version, "Open MPI 4.1.4", or the reason why Sluice has no MPI.
std::string mpi_description();

// The ranks of MPI_COMM_WORLD.
struct MpiWorld {
  Rank rank = 0;
  int ranks = 1;
  std::vector<std::string> nodes;  // by rank; ranks of one node have the same text
  std::vector<std::string> hosts;  // by rank
};

// Gathers the node and host of every rank. Blocks until every rank of MPI_COMM_WORLD calls it.
Result<MpiWorld> mpi_world(const std::string& own_node, const std::string& own_host);

// A network of all ranks of MPI_COMM_WORLD. Blocks until every one of them calls it.
Result<std::unique_ptr<Network>> make_mpi_network();

}  // namespace sluice::transport
