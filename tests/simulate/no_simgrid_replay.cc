#include "tests/simulate/simgrid_replay.h"

namespace sluice::simulate {

bool has_simgrid() { return false; }

Result<double> replay_on_simgrid(const Schedule& /*schedule*/, const cluster::Cluster& /*cluster*/,
                                 double /*bytes*/, NextMessage /*next*/) {
  return Status{Code::InvalidArgument, "this build has no SimGrid"};
}

}  // namespace sluice::simulate
