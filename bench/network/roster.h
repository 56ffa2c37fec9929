// roster.h - the contenders in a cluster in a box, and how to start each on its hosts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/allreduce/team.h"
#include "bench/allreduce/temporary_folder.h"
#include "bench/network/outcome.h"
#include "tests/box/cluster_box.h"

namespace sluice::bench {

// One setting of a contender, run by a team of its own. The best setting counts, size by size.
struct ContenderSetting {
  std::string contender;
  std::string setting;
  Role role = Role::Peer;
  DataType type = DataType::F32;
  TeamOptions team;
};

struct ClusterSetup {
  const box::ClusterBox& box;
  const EmulatedCluster& cluster;
  const TemporaryFolder& folder;
  std::filesystem::path programs;  // the folder bench/ of the build
};

// All names that roster() accepts.
std::vector<std::string> known_contenders();

// The settings of these contenders, in order, ready to start. Throws Error for an unknown name. The
// box and the cluster of `setup` must outlive the result.
std::vector<ContenderSetting> roster(const std::vector<std::string>& contenders,
                                     const ClusterSetup& setup);

}  // namespace sluice::bench
