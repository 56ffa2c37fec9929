// no_mpi.cc - mpi.h for builds without MPI.
#include "transport/mpi/mpi.h"

namespace sluice::transport {
namespace {

constexpr const char* kWhy =
    "Sluice was built without MPI: install libopenmpi-dev and configure with -DSLUICE_MPI=ON";

}  // namespace

bool has_mpi() { return false; }
std::string mpi_description() { return kWhy; }

Result<MpiWorld> mpi_world(const std::string& /*own_node*/, const std::string& /*own_host*/) {
  return Status{Code::InvalidArgument, kWhy};
}

Result<std::unique_ptr<Network>> make_mpi_network() { return Status{Code::InvalidArgument, kWhy}; }

}  // namespace sluice::transport
