// roster.h - who takes part over a cluster in a box, and how each is started on its hosts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/allreduce/team.h"
#include "bench/allreduce/temporary_folder.h"
#include "bench/network/outcome.h"
#include "tests/box/cluster_box.h"

namespace sluice::bench {

// A team, one setting of a contender. Of a contender's settings the best one at a size counts.
struct Entrant {
  std::string contender;
  std::string setting;
  Role role = Role::Peer;
  DataType type = DataType::F32;
  TeamOptions team;
};

struct Venue {
  const box::ClusterBox& box;
  const EmulatedCluster& cluster;
  const TemporaryFolder& folder;
  std::filesystem::path programs;  // the folder of bench/ in the build
};

// Every name that roster() takes.
std::vector<std::string> known_contenders();

// The teams of these contenders, in their order, as launched but for the start. Throws Error for a
// name nobody knows. The venue's box and cluster must outlive what it returns.
std::vector<Entrant> roster(const std::vector<std::string>& contenders, const Venue& venue);

}  // namespace sluice::bench
