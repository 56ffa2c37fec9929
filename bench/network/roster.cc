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

// The script that Open MPI calls instead of ssh, with a host and a command: enters its namespace.
std::string write_agent(const ClusterSetup& setup) {
  const fs::path path = fs::path{setup.folder.make("agent")} / "enter";
  // Each host gets its own host name, which Open MPI uses to name folders and shared memory.
  std::ofstream{path}
      << "#!/bin/sh\nhost=$1\nshift\n"
         "exec ip netns exec \"$host\" unshare --uts sh -c \"hostname $host; $*\"\n";
  fs::permissions(path, fs::perms::owner_all);
  return path.string();
}

class RosterBuilder {
 public:
  explicit RosterBuilder(const ClusterSetup& setup) : setup_{setup}, agent_{write_agent(setup)} {}

  std::vector<ContenderSetting> take() { return std::move(settings_); }

  void sluice_tcp(const std::string& contender, DataType type, const std::string& memory) {
    ContenderSetting& entry = add(contender, "", Role::Sluice, "allreduce/sluice_contender");
    entry.type = type;
    entry.team.extra = memory;
  }

  // Without spinning on the sockets.
  void sluice_tcp_sleeping() {
    ContenderSetting& entry =
        add("sluice_tcp_sleeping", "", Role::Sluice, "allreduce/sluice_contender");
    entry.team.extra = "pooled";
    entry.team.prepare = [enter = entry.team.prepare](Rank rank) {
      setenv("SLUICE_SPIN", "off", 1);
      enter(rank);
    };
  }

  void sluice_mpi() {
    ContenderSetting& entry = add("sluice_mpi", "", Role::Sluice, "allreduce/sluice_contender");
    entry.team.extra = "pooled";
    entry.team.launcher = mpirun({"-x", "SLUICE_TRANSPORT=mpi"});
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
      // Without a segment size, this algorithm is the plain ring.
      if (setting.algorithm == 5)
        more.insert(more.end(), {"--mca", "coll_tuned_allreduce_algorithm_segmentsize", "1048576"});
      add("openmpi", setting.name, Role::Peer, "allreduce/openmpi_contender").team.launcher =
          mpirun(more);
    }
  }

  void gloo() {
    ContenderSetting& entry = add("gloo", "", Role::Peer, "allreduce/gloo_contender");
    entry.team.extra = kInterface + ":" + entry.team.folder;
  }

  void stream() {
    ContenderSetting& entry = add("stream", "", Role::Reference, "network/stream_contender");
    entry.team.extra = std::to_string(next_port_);
    for (Rank rank = 0; rank < setup_.cluster.ranks(); ++rank)
      entry.team.extra += base::format(" {}", setup_.box.address(setup_.cluster.host_of(rank)));
  }

  void mpi_stream() {
    for (const int kib : {256, 1024}) {
      ContenderSetting& entry = add("mpi_stream", base::format("{}K", kib), Role::Reference,
                                    "network/mpi_stream_contender");
      entry.team.extra = std::to_string(kib * 1024);
      entry.team.launcher = mpirun({});
    }
  }

 private:
  ContenderSetting& add(const std::string& contender, const std::string& setting, Role role,
                        const std::string& program) {
    const std::string name = setting.empty() ? contender : contender + "." + setting;
    next_port_ += kPortsOfATeam;
    ContenderSetting& entry = settings_.emplace_back(
        ContenderSetting{.contender = contender, .setting = setting, .role = role});
    entry.team = {.name = name,
                  .program = (setup_.programs / program).string(),
                  .ranks = setup_.cluster.ranks(),
                  .processes = setup_.cluster.ranks(),
                  .folder = setup_.folder.make(name),
                  .prepare = [&box = setup_.box, &cluster = setup_.cluster, port = next_port_](
                                 Rank rank) { enter_host(box, cluster, port, rank); }};
    return entry;
  }

  // Called in a new process before exec: enters the host of the rank and sets its environment.
  static void enter_host(const box::ClusterBox& box, const EmulatedCluster& cluster, int port,
                         Rank rank) {
    if (!box.enter(cluster.host_of(rank))) {
      base::print(stderr, "contender: cannot enter host {}\n", cluster.host_of(rank));
      std::_Exit(127);
    }
    setenv("MASTER_ADDR", box.address(0).c_str(), 1);
    setenv("SLUICE_PORT", std::to_string(port).c_str(), 1);
    setenv("SLUICE_LOCAL_RANK", std::to_string(rank % cluster.ranks_per_host).c_str(), 1);
    setenv("SLUICE_LOCAL_RANKS", std::to_string(cluster.ranks_per_host).c_str(), 1);
  }

  std::vector<std::string> mpirun(const std::vector<std::string>& more) const {
    const EmulatedCluster& cluster = setup_.cluster;
    std::vector<std::string> hosts;
    for (int host = 0; host < cluster.hosts; ++host)
      hosts.push_back(base::format("{}:{}", setup_.box.host_name(host), cluster.ranks_per_host));
    // As on any other cluster, the launcher does not see Sluice's variables of a rank.
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

  const ClusterSetup& setup_;
  std::string agent_;
  int next_port_ = kFirstPort - kPortsOfATeam;
  std::vector<ContenderSetting> settings_;
};

struct KnownContender {
  std::string name;
  std::function<void(RosterBuilder&)> add;
};

std::vector<KnownContender> all_contenders() {
  return {
      {"sluice_tcp",
       [](RosterBuilder& all) { all.sluice_tcp("sluice_tcp", DataType::F32, "pooled"); }},
      {"sluice_tcp_foreign",
       [](RosterBuilder& all) { all.sluice_tcp("sluice_tcp_foreign", DataType::F32, "foreign"); }},
      {"sluice_tcp_f16",
       [](RosterBuilder& all) { all.sluice_tcp("sluice_tcp_f16", DataType::F16, "pooled"); }},
      {"sluice_tcp_sleeping", [](RosterBuilder& all) { all.sluice_tcp_sleeping(); }},
      {"sluice_mpi", [](RosterBuilder& all) { all.sluice_mpi(); }},
      {"openmpi", [](RosterBuilder& all) { all.openmpi(); }},
      {"gloo", [](RosterBuilder& all) { all.gloo(); }},
      {"stream", [](RosterBuilder& all) { all.stream(); }},
      {"mpi_stream", [](RosterBuilder& all) { all.mpi_stream(); }}};
}

}  // namespace

std::vector<std::string> known_contenders() {
  std::vector<std::string> names;
  for (const KnownContender& each : all_contenders()) names.push_back(each.name);
  return names;
}

std::vector<ContenderSetting> roster(const std::vector<std::string>& contenders,
                                     const ClusterSetup& setup) {
  RosterBuilder builder{setup};
  const std::vector<KnownContender> known = all_contenders();
  for (const std::string& name : contenders) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const KnownContender& each) { return each.name == name; });
    if (found == known.end()) {
      throw Error{Status{Code::InvalidArgument,
                         base::format("there is no contender {}: choose from {}", base::quote(name),
                                      base::join(known_contenders(), ", "))}};
    }
    found->add(builder);
  }
  return builder.take();
}

}  // namespace sluice::bench
