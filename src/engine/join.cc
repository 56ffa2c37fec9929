#include "engine/join.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/rendezvous/rendezvous.h"
#include "transport/memory/memory.h"
#include "transport/mpi/mpi.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::engine {
namespace {

// Two sockets for every peer of another node, and the limit is often 1,024.
void allow_many_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

// Nodes in the order of their lowest ranks.
std::vector<transport::RankLocation> places_of(const std::vector<std::string>& nodes) {
  std::vector<std::string> seen;
  std::vector<Rank> ranks_on;
  std::vector<transport::RankLocation> places;
  for (const std::string& name : nodes) {
    const auto node =
        static_cast<std::size_t>(std::find(seen.begin(), seen.end(), name) - seen.begin());
    if (node == seen.size()) {
      seen.push_back(name);
      ranks_on.push_back(0);
    }
    places.push_back({.node = static_cast<int>(node), .local = ranks_on[node]++});
  }
  return places;
}

// The memory of this rank's node, where its ranks have met.
Result<transport::JoinedMemory> enter_room(const bootstrap::Placement& placement,
                                           const std::vector<transport::RankLocation>& places,
                                           transport::Clock::time_point deadline) {
  const transport::RankLocation& own = places[static_cast<std::size_t>(placement.rank)];
  const auto here =
      std::count_if(places.begin(), places.end(),
                    [&](const transport::RankLocation& place) { return place.node == own.node; });
  if (here > 1) {
    return transport::join_shm({own.local, static_cast<int>(here),
                                base::format("{}/{}", placement.job, own.node), placement.token,
                                deadline});
  }
  std::shared_ptr<transport::Memory> memory = transport::make_single_rank_memory();
  Result<transport::MemoryBlock> control = memory->allocate(transport::ControlBlock::bytes(1));
  if (!control.ok()) return control.status();
  return transport::JoinedMemory{memory, control.value().data};
}

// What the ranks of a job know each other by, on all its nodes. MPICH's own name for a job does not
// reach beyond one.
std::string common_token(const bootstrap::Placement& placement) {
  return placement.token_given || placement.launcher != "MPICH" ? placement.token : "";
}

std::string node_of(const bootstrap::Environment& environment) {
  return environment.text(bootstrap::variable::kNode).value_or(bootstrap::node_identity());
}

std::string describe(const std::vector<transport::RankLocation>& places, std::string_view way) {
  int nodes = 0;
  for (const transport::RankLocation& place : places) nodes = std::max(nodes, place.node + 1);
  return base::format("{} ranks on {} node{}, {} between them", places.size(), nodes,
                      nodes == 1 ? "" : "s", way);
}

// Where the ranks are, and the memory in which those of this node have met.
struct Seating {
  std::vector<transport::RankLocation> places;
  transport::JoinedMemory room;

  bool is_local(std::size_t peer, Rank rank) const {
    return places[peer].node == places[static_cast<std::size_t>(rank)].node;
  }
  bool one_node() const {
    return std::all_of(places.begin(), places.end(),
                       [](const transport::RankLocation& place) { return place.node == 0; });
  }
};

Result<Seating> take_seats(const bootstrap::Placement& placement,
                           std::vector<transport::RankLocation> places,
                           transport::Clock::time_point deadline) {
  Result<transport::JoinedMemory> room = enter_room(placement, places, deadline);
  if (!room.ok()) return room.status();
  return Seating{std::move(places), std::move(room).value()};
}

std::unique_ptr<transport::Group> group_of(Rank rank, Seating seating,
                                           std::unique_ptr<transport::Network> network) {
  return std::make_unique<transport::Group>(rank, seating.places, std::move(seating.room.memory),
                                            seating.room.control, std::move(network));
}

Result<std::unique_ptr<transport::Group>> join_by_tcp(const bootstrap::Environment& environment,
                                                      const bootstrap::Placement& placement,
                                                      transport::Clock::time_point deadline) {
  if (!placement.token_given && placement.rank == 0) {
    base::log_warning(
        base::format("no SLUICE_TOKEN was given: whoever reaches {} can join; listening on the "
                     "chosen interface only",
                     transport::show_address(placement.master, placement.port)));
  }
  allow_many_files();
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
  bootstrap::RendezvousResult company = std::move(met).value();
  std::vector<std::string> nodes;
  for (const bootstrap::RankInfo& participant : company.participants)
    nodes.push_back(participant.node);
  std::vector<transport::RankLocation> places = places_of(nodes);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    places[rank].host = company.participants[rank].host;
    places[rank].address = company.participants[rank].address;
  }
  Result<Seating> seated = take_seats(placement, std::move(places), deadline);
  if (!seated.ok()) return seated.status();
  Seating seating = std::move(seated).value();
  const auto own_rank = static_cast<std::size_t>(placement.rank);
  const bootstrap::RankInfo& own = company.participants[own_rank];
  if (seating.one_node()) return group_of(placement.rank, std::move(seating), nullptr);
  if (placement.rank == 0) base::log_info(describe(seating.places, "tcp"));
  if (seating.places[own_rank].local == 0) {
    base::log_info(base::format("node {}: {} by {} ({})", seating.places[own_rank].node, own.host,
                                own.address, company.interface));
  }
  transport::TcpOptions options{.rank = placement.rank,
                                .own_address = own.address,
                                .listener = std::move(company.listener),
                                .token = common_token(placement),
                                .wake_descriptor = seating.room.memory->wake_descriptor(),
                                .deadline = deadline};
  for (std::size_t rank = 0; rank < seating.places.size(); ++rank) {
    const bootstrap::RankInfo& peer = company.participants[rank];
    const bool local = seating.is_local(rank, placement.rank);
    options.addresses.push_back({peer.address, local ? std::uint16_t{0} : peer.port});
  }
  Result<std::unique_ptr<transport::Network>> network =
      transport::make_tcp_network(std::move(options));
  if (!network.ok()) return network.status();
  return group_of(placement.rank, std::move(seating), std::move(network).value());
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
  std::vector<transport::RankLocation> places = places_of(world.nodes);
  for (std::size_t rank = 0; rank < places.size(); ++rank) places[rank].host = world.hosts[rank];
  Result<Seating> seated = take_seats(placement, std::move(places), deadline);
  if (!seated.ok()) return seated.status();
  Seating seating = std::move(seated).value();
  if (seating.one_node()) return group_of(placement.rank, std::move(seating), nullptr);
  if (placement.rank == 0) base::log_info(describe(seating.places, "mpi"));
  Result<std::unique_ptr<transport::Network>> network = transport::make_mpi_network();
  if (!network.ok()) return network.status();
  return group_of(placement.rank, std::move(seating), std::move(network).value());
}

}  // namespace

Result<std::unique_ptr<transport::Group>> join_ranks(const bootstrap::Environment& environment,
                                                     const bootstrap::Placement& placement,
                                                     transport::Clock::time_point deadline) {
  const std::string way = environment.text(bootstrap::variable::kTransport).value_or("auto");
  if (way != "auto" && way != "tcp" && way != "mpi") {
    return Status{
        Code::InvalidInput,
        base::format("SLUICE_TRANSPORT is {}: choose from auto, tcp, mpi", base::quote(way))};
  }
  const bool all_here = placement.local_ranks == placement.ranks &&
                        (placement.local_known || placement.master.empty());
  if (all_here && way == "auto" && !environment.has(bootstrap::variable::kNode)) {
    return transport::make_shm_group(
        {placement.rank, placement.ranks, placement.job, placement.token, deadline});
  }
  const bool by_mpi =
      way == "mpi" || (way == "auto" && placement.launcher == "Open MPI" && transport::has_mpi());
  return by_mpi ? join_by_mpi(environment, placement, deadline)
                : join_by_tcp(environment, placement, deadline);
}

}  // namespace sluice::engine
