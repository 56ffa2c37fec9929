// join.cc - makes the communicator of all ranks: processes that a launcher started (from_env), or
// threads of one process (in_process).
//
// Ranks of one node join in shared memory. Ranks of different nodes connect through the network
// that SLUICE_TRANSPORT names, else through MPI where Open MPI started the ranks, else through TCP.
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/environment.h"
#include "bootstrap/launch/failure_report.h"
#include "bootstrap/placement.h"
#include "bootstrap/rendezvous/rendezvous.h"
#include "engine/communicator_state.h"
#include "engine/select/choices.h"
#include "engine/select/constants.h"
#include "transport/memory/memory.h"
#include "transport/mpi/mpi.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice {
namespace engine {
namespace {

// A node's first rank has a connection to each other rank there, and any rank may watch the process
// of another. A peer of another node needs two files, and two more for each communicator. The usual
// limit is 1,024.
void allow_files_for(int ranks, bool network) {
  constexpr rlim_t kFilesOfAPeer = 2;
  constexpr rlim_t kFilesOfTheProgram = 256;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  const rlim_t needed = kFilesOfAPeer * static_cast<rlim_t>(ranks) + kFilesOfTheProgram;
  if (!network && files.rlim_cur >= needed) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// The location of every rank, with nodes numbered in the order of their lowest ranks.
std::vector<transport::RankLocation> locations_of(const std::vector<std::string>& nodes) {
  std::vector<std::string> seen;
  std::vector<Rank> ranks_on;
  std::vector<transport::RankLocation> locations;
  for (const std::string& name : nodes) {
    const auto node =
        static_cast<std::size_t>(std::find(seen.begin(), seen.end(), name) - seen.begin());
    if (node == seen.size()) {
      seen.push_back(name);
      ranks_on.push_back(0);
    }
    locations.push_back({.node = static_cast<int>(node),
                         .local = ranks_on[node]++,
                         .in_job = static_cast<Rank>(locations.size())});
  }
  return locations;
}

// The locations of all ranks, and the memory that the ranks of this node share.
struct Joined {
  std::vector<transport::RankLocation> locations;
  transport::JoinedMemory memory;

  int nodes() const {
    int most = 0;
    for (const transport::RankLocation& each : locations) most = std::max(most, each.node);
    return most + 1;
  }
  bool same_node(std::size_t a, std::size_t b) const {
    return locations[a].node == locations[b].node;
  }
};

Result<Joined> join_node(const bootstrap::Placement& placement,
                         std::vector<transport::RankLocation> locations,
                         transport::Clock::time_point deadline) {
  const transport::RankLocation& own = locations[static_cast<std::size_t>(placement.rank)];
  const auto here = std::count_if(
      locations.begin(), locations.end(),
      [&](const transport::RankLocation& location) { return location.node == own.node; });
  if (here > 1) {
    Result<transport::JoinedMemory> memory = transport::join_shm(
        {own.local, static_cast<int>(here), base::format("{}/{}", placement.job, own.node),
         placement.token, deadline});
    if (!memory.ok()) return memory.status();
    return Joined{std::move(locations), std::move(memory).value()};
  }
  std::shared_ptr<transport::Memory> memory = transport::make_single_rank_memory();
  const Result<transport::MemoryBlock> control =
      memory->allocate(transport::ControlBlock::bytes(1));
  if (!control.ok()) return control.status();
  return Joined{std::move(locations), {std::move(memory), control.value().data}};
}

// The token that the ranks of all nodes share. MPICH's own name of a job differs from node to node,
// so it cannot be the token.
std::string common_token(const bootstrap::Placement& placement) {
  return placement.token_given || placement.launcher != "MPICH" ? placement.token : "";
}

std::string node_of(const bootstrap::Environment& environment) {
  return environment.text(bootstrap::variable::kNode).value_or(bootstrap::node_identity());
}

std::string describe(const Joined& joined, std::string_view network) {
  return base::format("{} ranks on {} nodes, {} between them", joined.locations.size(),
                      joined.nodes(), network);
}

std::unique_ptr<transport::Group> make_group(Rank rank, Joined joined,
                                             std::unique_ptr<transport::Network> network) {
  return std::make_unique<transport::Group>(rank, joined.locations, std::move(joined.memory.memory),
                                            joined.memory.control, std::move(network));
}

Result<std::unique_ptr<transport::Group>> join_by_tcp(const bootstrap::Environment& environment,
                                                      const bootstrap::Placement& placement,
                                                      transport::Clock::time_point deadline) {
  if (!placement.token_given && placement.rank == 0) {
    base::log_warning(base::format(
        "SLUICE_TOKEN is not set, so any process that reaches {} can join the job (only the "
        "chosen interface listens); set it to the same secret on every host",
        transport::show_address(placement.master, placement.port)));
  }
  const std::string spin = environment.text(bootstrap::variable::kSpin).value_or("on");
  if (spin != "on" && spin != "off") {
    return Status{Code::InvalidInput,
                  base::format("SLUICE_SPIN is {}: choose on or off", base::quote(spin))};
  }
  Result<bootstrap::RendezvousResult> met =
      bootstrap::rendezvous({.rank = placement.rank,
                             .ranks = placement.ranks,
                             .local_ranks = placement.local_known ? placement.local_ranks : 0,
                             .token = common_token(placement),
                             .master = placement.master.empty() ? "127.0.0.1" : placement.master,
                             .port = placement.port,
                             .interface = placement.interface,
                             .node = node_of(environment),
                             .deadline = deadline,
                             .report = base::log_info});
  if (!met.ok()) return met.status();
  bootstrap::RendezvousResult roster = std::move(met).value();
  std::vector<std::string> nodes;
  for (const bootstrap::RankInfo& each : roster.participants) nodes.push_back(each.node);
  std::vector<transport::RankLocation> locations = locations_of(nodes);
  for (std::size_t rank = 0; rank < locations.size(); ++rank) {
    locations[rank].host = roster.participants[rank].host;
    locations[rank].address = roster.participants[rank].address;
  }
  Result<Joined> on_node = join_node(placement, std::move(locations), deadline);
  if (!on_node.ok()) return on_node.status();
  Joined joined = std::move(on_node).value();
  if (joined.nodes() == 1) return make_group(placement.rank, std::move(joined), nullptr);
  const auto own_rank = static_cast<std::size_t>(placement.rank);
  const bootstrap::RankInfo& own = roster.participants[own_rank];
  if (placement.rank == 0) base::log_info(describe(joined, "tcp"));
  if (joined.locations[own_rank].local == 0) {
    base::log_info(base::format("node {}: {} by {} ({})", joined.locations[own_rank].node, own.host,
                                own.address, roster.interface));
  }
  transport::TcpOptions options{.rank = placement.rank,
                                .own_address = own.address,
                                .listener = std::move(roster.listener),
                                .token = common_token(placement),
                                .wake_descriptor = joined.memory.memory->wake_descriptor(),
                                .deadline = deadline,
                                .spins = spin == "on"};
  for (std::size_t rank = 0; rank < joined.locations.size(); ++rank) {
    const bootstrap::RankInfo& peer = roster.participants[rank];
    const bool local = joined.same_node(rank, own_rank);
    options.addresses.push_back({peer.address, local ? std::uint16_t{0} : peer.port});
  }
  Result<std::unique_ptr<transport::Network>> network =
      transport::make_tcp_network(std::move(options));
  if (!network.ok()) return network.status();
  return make_group(placement.rank, std::move(joined), std::move(network).value());
}

Result<std::unique_ptr<transport::Group>> join_by_mpi(const bootstrap::Environment& environment,
                                                      const bootstrap::Placement& placement,
                                                      transport::Clock::time_point deadline) {
  if (!transport::has_mpi()) return Status{Code::InvalidArgument, transport::mpi_description()};
  const Result<transport::MpiWorld> met =
      transport::mpi_world(node_of(environment), bootstrap::host_name());
  if (!met.ok()) return met.status();
  const transport::MpiWorld& world = met.value();
  if (world.rank != placement.rank || world.ranks != placement.ranks) {
    return Status{
        Code::InvalidInput,
        base::format("{} says that this is rank {} of {}, but MPI says rank {} of {}: was "
                     "it started by the mpirun of the MPI that Sluice was built with ({})?",
                     placement.launcher, placement.rank, placement.ranks, world.rank, world.ranks,
                     transport::mpi_description())};
  }
  std::vector<transport::RankLocation> locations = locations_of(world.nodes);
  for (std::size_t rank = 0; rank < locations.size(); ++rank)
    locations[rank].host = world.hosts[rank];
  Result<Joined> on_node = join_node(placement, std::move(locations), deadline);
  if (!on_node.ok()) return on_node.status();
  Joined joined = std::move(on_node).value();
  if (joined.nodes() == 1) return make_group(placement.rank, std::move(joined), nullptr);
  if (placement.rank == 0) base::log_info(describe(joined, "mpi"));
  Result<std::unique_ptr<transport::Network>> network = transport::make_mpi_network();
  if (!network.ok()) return network.status();
  return make_group(placement.rank, std::move(joined), std::move(network).value());
}

// Returns when all ranks have joined. The error names the missing ranks.
Result<std::unique_ptr<transport::Group>> join_ranks(const bootstrap::Environment& environment,
                                                     const bootstrap::Placement& placement,
                                                     transport::Clock::time_point deadline) {
  const std::string network = environment.text(bootstrap::variable::kTransport).value_or("auto");
  if (network != "auto" && network != "tcp" && network != "mpi") {
    return Status{
        Code::InvalidInput,
        base::format("SLUICE_TRANSPORT is {}: choose from auto, tcp, mpi", base::quote(network))};
  }
  const bool all_here = placement.local_ranks == placement.ranks &&
                        (placement.local_known || placement.master.empty());
  const bool in_memory =
      all_here && network == "auto" && !environment.has(bootstrap::variable::kNode);
  allow_files_for(placement.ranks, !in_memory);
  if (in_memory) {
    return transport::make_shm_group(
        {placement.rank, placement.ranks, placement.job, placement.token, deadline});
  }
  const bool by_mpi = network == "mpi" || (network == "auto" && placement.launcher == "Open MPI" &&
                                           transport::has_mpi());
  return by_mpi ? join_by_mpi(environment, placement, deadline)
                : join_by_tcp(environment, placement, deadline);
}

}  // namespace
}  // namespace engine

Communicator Communicator::from_env(std::chrono::milliseconds deadline) {
  const bootstrap::Environment environment = bootstrap::Environment::of_process();
  const bootstrap::Placement placement = bootstrap::placement_of(environment).value();
  const std::optional<std::string> log = environment.text(bootstrap::variable::kLog);
  if (log && !base::set_log_level_from(*log)) {
    base::log_warning(
        base::format("SLUICE_LOG is {}: choose info, warning or off", base::quote(*log)));
  }
  if (placement.ranks == 1) return in_process(1).front();
  std::unique_ptr<transport::Group> group =
      engine::join_ranks(environment, placement, transport::Clock::now() + deadline).value();
  auto context = group->network() == nullptr
                     ? std::make_shared<engine::RankContext>(placement.ranks)
                     : std::make_shared<engine::RankContext>(*group->network());
  if (const auto launcher = environment.text(bootstrap::variable::kLauncher))
    context->launcher = bootstrap::FailureReporter::to(*launcher);
  // The ranks agree on their choices with collectives, which use typical constants until then.
  engine::Choices first{engine::RankOrder{*group}, group->rank(), engine::typical_constants(), {}};
  Communicator joined{std::make_shared<engine::CommunicatorState>(
      std::move(group), std::move(context), std::move(first))};
  joined.set_deadline(deadline);
  joined.state_->set_choices(engine::agreed_choices(joined, joined.state_->group(), environment));
  joined.set_deadline(engine::kDefaultDeadline);
  return joined;
}

std::vector<Communicator> Communicator::in_process(int ranks) {
  if (ranks < 1) throw Error{Status{Code::InvalidArgument, "a communicator needs at least 1 rank"}};
  const bootstrap::Environment environment = bootstrap::Environment::of_process();
  const CostConstants constants =
      engine::kept_constants(environment, ranks).value_or(engine::typical_constants());
  const std::vector<engine::AlgorithmOverride> overrides =
      engine::overrides_from(environment).value();
  std::vector<Communicator> communicators;
  for (auto& group : transport::make_inproc_groups(ranks)) {
    engine::Choices choices{engine::RankOrder{*group}, group->rank(), constants, overrides};
    communicators.push_back(Communicator{std::make_shared<engine::CommunicatorState>(
        std::move(group), std::make_shared<engine::RankContext>(ranks), std::move(choices))});
  }
  return communicators;
}

}  // namespace sluice
