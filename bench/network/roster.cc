#include "bench/network/roster.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/format.h"
#include "base/text.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;
constexpr int kFirstPort = 29400;
constexpr int kPortsOfATeam = 256;
const std::string kInterface = "net0";

// What Open MPI calls with a host and a command line, in place of ssh: hosts are namespaces here.
std::string write_agent(const Venue& venue) {
  const fs::path path = fs::path{venue.folder.make("agent")} / "enter";
  // Every host has a name of its own: by it, Open MPI names folders and shared memory.
  std::ofstream{path}
      << "#!/bin/sh\nhost=$1\nshift\n"
         "exec ip netns exec \"$host\" unshare --uts sh -c \"hostname $host; $*\"\n";
  fs::permissions(path, fs::perms::owner_all);
  return path.string();
}

class Casting {
 public:
  explicit Casting(const Venue& venue) : venue_{venue}, agent_{write_agent(venue)} {}

  std::vector<Entrant> take() { return std::move(entrants_); }

  void sluice_tcp(const std::string& contender, DataType type, const std::string& memory) {
    Entrant& entrant = add(contender, "", Role::Sluice, "allreduce/sluice_contender");
    entrant.type = type;
    entrant.team.extra = memory;
  }

  void sluice_mpi() {
    Entrant& entrant = add("sluice_mpi", "", Role::Sluice, "allreduce/sluice_contender");
    entrant.team.extra = "pooled";
    entrant.team.launcher = mpirun({"-x", "SLUICE_TRANSPORT=mpi"});
  }

  void openmpi() {
    struct Setting {
      const char* name;
      int algorithm;
    };
    constexpr Setting kSettings[] = {{"default", 0}, {"nonoverlapping", 2}, {"doubling", 3},
                                     {"ring", 4},    {"segmented", 5},      {"rabenseifner", 6}};
    for (const Setting& setting : kSettings) {
      std::vector<std::string> more;
      if (setting.algorithm != 0) {
        more = {"--mca", "coll_tuned_use_dynamic_rules",   "1",
                "--mca", "coll_tuned_allreduce_algorithm", std::to_string(setting.algorithm)};
      }
      // Its own choice of a segment; without one, this algorithm is the plain ring.
      if (setting.algorithm == 5)
        more.insert(more.end(), {"--mca", "coll_tuned_allreduce_algorithm_segmentsize", "1048576"});
      add("openmpi", setting.name, Role::Peer, "allreduce/openmpi_contender").team.launcher =
          mpirun(more);
    }
  }

  void gloo() {
    Entrant& entrant = add("gloo", "", Role::Peer, "allreduce/gloo_contender");
    entrant.team.extra = kInterface + ":" + entrant.team.folder;
  }

  void stream() {
    Entrant& entrant = add("stream", "", Role::Reference, "network/stream_contender");
    entrant.team.extra = std::to_string(next_port_);
    for (Rank rank = 0; rank < venue_.cluster.ranks(); ++rank)
      entrant.team.extra += base::format(" {}", venue_.box.address(venue_.cluster.host_of(rank)));
  }

  void mpi_stream() {
    for (const int kib : {256, 1024}) {
      Entrant& entrant = add("mpi_stream", base::format("{}K", kib), Role::Reference,
                             "network/mpi_stream_contender");
      entrant.team.extra = std::to_string(kib * 1024);
      entrant.team.launcher = mpirun({});
    }
  }

 private:
  Entrant& add(const std::string& contender, const std::string& setting, Role role,
               const std::string& program) {
    const std::string name = setting.empty() ? contender : contender + "." + setting;
    next_port_ += kPortsOfATeam;
    Entrant& entrant =
        entrants_.emplace_back(Entrant{.contender = contender, .setting = setting, .role = role});
    entrant.team = {.name = name,
                    .program = (venue_.programs / program).string(),
                    .ranks = venue_.cluster.ranks(),
                    .processes = venue_.cluster.ranks(),
                    .folder = venue_.folder.make(name),
                    .prepare = [&box = venue_.box, &cluster = venue_.cluster, port = next_port_](
                                   Rank rank) { settle(box, cluster, port, rank); }};
    return entrant;
  }

  // In a process that is about to become that rank, or the launcher of all: to its host.
  static void settle(const box::ClusterBox& box, const EmulatedCluster& cluster, int port,
                     Rank rank) {
    if (!box.enter(cluster.host_of(rank))) {
      base::print(stderr, "contender: there is no way to host {}\n", cluster.host_of(rank));
      std::_Exit(127);
    }
    setenv("MASTER_ADDR", box.address(0).c_str(), 1);
    setenv("SLUICE_PORT", std::to_string(port).c_str(), 1);
    setenv("SLUICE_LOCAL_RANK", std::to_string(rank % cluster.ranks_per_host).c_str(), 1);
    setenv("SLUICE_LOCAL_RANKS", std::to_string(cluster.ranks_per_host).c_str(), 1);
  }

  std::vector<std::string> mpirun(const std::vector<std::string>& more) const {
    const EmulatedCluster& cluster = venue_.cluster;
    std::vector<std::string> hosts;
    for (int host = 0; host < cluster.hosts; ++host)
      hosts.push_back(base::format("{}:{}", venue_.box.host_name(host), cluster.ranks_per_host));
    // A launcher sees the ranks' variables of Sluice no more than on any other cluster.
    std::vector<std::string> line{"env",
                                  "-u",
                                  "SLUICE_LOCAL_RANK",
                                  "-u",
                                  "SLUICE_LOCAL_RANKS",
                                  "mpirun.openmpi",
                                  "--allow-run-as-root",
                                  "--oversubscribe",
                                  "--bind-to",
                                  "none"};
    const auto set = [&](const std::string& key, const std::string& value) {
      line.insert(line.end(), {"--mca", key, value});
    };
    set("plm", "rsh");
    set("plm_rsh_agent", agent_);
    set("pml", "ob1");
    set("btl", cluster.ranks_per_host > 1 ? "vader,tcp,self" : "tcp,self");
    set("btl_tcp_if_include", kInterface);
    set("oob_tcp_if_include", kInterface);
    set("mpi_yield_when_idle", "1");  // ranks share cores
    line.insert(line.end(), more.begin(), more.end());
    line.insert(line.end(), {"--host", base::format("{}", base::join(hosts, ",")), "-np",
                             std::to_string(cluster.ranks())});
    return line;
  }

  const Venue& venue_;
  std::string agent_;
  int next_port_ = kFirstPort - kPortsOfATeam;
  std::vector<Entrant> entrants_;
};

struct Part {
  std::string name;
  std::function<void(Casting&)> cast;
};

std::vector<Part> parts() {
  return {
      {"sluice_tcp", [](Casting& all) { all.sluice_tcp("sluice_tcp", DataType::F32, "pooled"); }},
      {"sluice_tcp_foreign",
       [](Casting& all) { all.sluice_tcp("sluice_tcp_foreign", DataType::F32, "foreign"); }},
      {"sluice_tcp_f16",
       [](Casting& all) { all.sluice_tcp("sluice_tcp_f16", DataType::F16, "pooled"); }},
      {"sluice_mpi", [](Casting& all) { all.sluice_mpi(); }},
      {"openmpi", [](Casting& all) { all.openmpi(); }},
      {"gloo", [](Casting& all) { all.gloo(); }},
      {"stream", [](Casting& all) { all.stream(); }},
      {"mpi_stream", [](Casting& all) { all.mpi_stream(); }}};
}

}  // namespace

std::vector<std::string> known_contenders() {
  std::vector<std::string> names;
  for (const Part& part : parts()) names.push_back(part.name);
  return names;
}

std::vector<Entrant> roster(const std::vector<std::string>& contenders, const Venue& venue) {
  Casting casting{venue};
  const std::vector<Part> known = parts();
  for (const std::string& name : contenders) {
    const auto part = std::find_if(known.begin(), known.end(),
                                   [&](const Part& each) { return each.name == name; });
    if (part == known.end()) {
      throw Error{Status{Code::InvalidArgument,
                         base::format("there is no contender {}: choose from {}", base::quote(name),
                                      base::join(known_contenders(), ", "))}};
    }
    part->cast(casting);
  }
  return casting.take();
}

}  // namespace sluice::bench
