#include "tests/simulate/simgrid_replay.h"

#include <sys/wait.h>
#include <unistd.h>
#include <xbt/log.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <utility>
#include <vector>

#include "base/format.h"

namespace sluice::simulate {
namespace {

namespace s4u = simgrid::s4u;

using Hosts = std::vector<s4u::Host*>;

void choose_plain_model() {
  xbt_log_control_set("root.thresh:warning");
  for (const char* const setting :
       {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0",
        "network/bandwidth-factor:1", "network/latency-factor:1", "network/weight-S:0",
        "surf/precision:1e-12", "maxmin/precision:1e-9", "contexts/stack-size:128"})
    s4u::Engine::set_config(setting);
}

// SimGrid 4 has a root zone with zones below it.
template <class Zone>
Zone* empty_fabric(Zone* root) {
  if constexpr (requires { root->add_netzone_full("fabric"); }) {
    return root->add_netzone_full("fabric");
  } else {
    return s4u::create_full_zone("fabric");
  }
}

// Every host has a link in each direction to its switch, and every switch to the one above.
Hosts build_fabric(const cluster::Cluster& cluster, int ranks, double latency_s) {
  const Link host_link = cluster.constants.between;
  const SwitchLevel level = cluster.constants.network.levels.at(0);
  const double up_bytes_per_s =
      host_link.bandwidth_bytes_per_s * level.nodes / level.oversubscription;
  s4u::NetZone* const fabric = empty_fabric(s4u::Engine::get_instance()->get_netzone_root());
  const auto cable = [&](const std::string& name, double bytes_per_s, double one_way_s) {
    const auto one_way = [&](const char* way) {
      return fabric->create_link(name + way, bytes_per_s)->set_latency(one_way_s)->seal();
    };
    return std::pair<const s4u::Link*, const s4u::Link*>{one_way("-up"), one_way("-down")};
  };
  Hosts hosts;
  std::vector<std::pair<const s4u::Link*, const s4u::Link*>> host_cables;
  std::vector<std::pair<const s4u::Link*, const s4u::Link*>> switch_cables;
  for (int rank = 0; rank < ranks; ++rank) {
    hosts.push_back(fabric->create_host(base::format("host{}", rank), 1e9)->seal());
    host_cables.push_back(
        cable(base::format("host{}", rank), host_link.bandwidth_bytes_per_s, latency_s / 2));
    if (rank % level.nodes == 0)
      switch_cables.push_back(
          cable(base::format("switch{}", rank / level.nodes), up_bytes_per_s, 0));
  }
  const auto index = [](int of) { return static_cast<std::size_t>(of); };
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      std::vector<s4u::LinkInRoute> route{s4u::LinkInRoute{host_cables[index(from)].first}};
      if (from / level.nodes != to / level.nodes) {
        route.emplace_back(switch_cables[index(from / level.nodes)].first);
        route.emplace_back(switch_cables[index(to / level.nodes)].second);
      }
      route.emplace_back(host_cables[index(to)].second);
      fabric->add_route(hosts[index(from)]->get_netpoint(), hosts[index(to)]->get_netpoint(),
                        nullptr, nullptr, route, false);
    }
  }
  fabric->seal();
  return hosts;
}

// A send or a receive of a rank.
struct Operation {
  int step = 0;
  bool writes = false;
  Range range;
  std::size_t messages = 1;  // messages that are not done
  std::size_t waits = 0;     // predecessors that are not done
  std::vector<Operation*> followers;
  s4u::SemaphorePtr ready;  // once for every message
};

bool share_a_chunk(const Range& a, const Range& b, int chunks) {
  if (a.buffer != b.buffer) return false;
  for (int i = 0; i < a.count; ++i) {
    if (((a.first + i - b.first) % chunks + chunks) % chunks < b.count) return true;
  }
  return false;
}

class Replay {
 public:
  // A message arrives `later_s` after it has left its last link.
  Replay(const Schedule& schedule, Hosts hosts, double bytes, double later_s)
      : hosts_{std::move(hosts)}, later_s_{later_s} {
    operations_.resize(schedule.programs.size());
    for (std::size_t rank = 0; rank < operations_.size(); ++rank) {
      const Program& program = schedule.programs[rank];
      list_operations(static_cast<Rank>(rank), program, bytes);
      order(operations_[rank], program.chunking().chunks());
    }
  }

  // For each sender and receiver, an actor at either end passes their messages in order, one at a
  // time, each when both ends are ready.
  void start() {
    for (auto& [pair, message] : sent_) {
      const auto [from, to] = pair;
      auto* const box = s4u::Mailbox::by_name(base::format("{}>{}", from, to));
      const std::vector<std::pair<Operation*, double>>& sends = message;
      s4u::Actor::create("sender", hosts_[static_cast<std::size_t>(from)], [this, box, &sends] {
        for (const auto& [send, bytes] : sends) {
          send->ready->acquire();
          box->put(this, static_cast<std::uint64_t>(std::llround(bytes)));
          finish(*send);
        }
      });
    }
    for (auto& [pair, receives] : received_) {
      auto* const box = s4u::Mailbox::by_name(base::format("{}>{}", pair.first, pair.second));
      const std::vector<Operation*>& in_order = receives;
      s4u::Actor::create("receiver", hosts_[static_cast<std::size_t>(pair.second)],
                         [this, box, &in_order] {
                           for (Operation* const receive : in_order) {
                             receive->ready->acquire();
                             box->get<Replay>();
                             arrive(*receive);
                           }
                         });
    }
  }

 private:
  void list_operations(Rank rank, const Program& program, double bytes) {
    std::vector<std::unique_ptr<Operation>>& own = operations_[static_cast<std::size_t>(rank)];
    const Chunking& chunking = program.chunking();
    for (int step = 0; step < program.steps(); ++step) {
      for (const Send& send : program.sends(step)) {
        own.push_back(std::make_unique<Operation>(Operation{step, false, send.range}));
        sent_[{rank, send.peer}].emplace_back(
            own.back().get(), bytes * static_cast<double>(chunking.weight(send.range)) /
                                  static_cast<double>(chunking.total_weight()));
      }
      for (const Write& receive : program.receives(step)) {
        own.push_back(std::make_unique<Operation>(Operation{step, true, receive.range, 0}));
        for (const Rank source : program.sources(receive)) {
          if (source == kOwn) continue;
          received_[{source, rank}].push_back(own.back().get());
          ++own.back()->messages;
        }
      }
    }
  }

  // Two operations run in order if they touch the same chunk and at least one writes it. Operations
  // of the same step are independent.
  static void order(std::vector<std::unique_ptr<Operation>>& own, int chunks) {
    for (std::size_t b = 0; b < own.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        if (own[a]->step == own[b]->step || !(own[a]->writes || own[b]->writes)) continue;
        if (!share_a_chunk(own[a]->range, own[b]->range, chunks)) continue;
        own[a]->followers.push_back(own[b].get());
        ++own[b]->waits;
      }
      own[b]->ready =
          s4u::Semaphore::create(own[b]->waits == 0 ? static_cast<unsigned>(own[b]->messages) : 0);
    }
  }

  void arrive(Operation& receive) const {
    if (later_s_ == 0) return finish(receive);
    s4u::Actor::create("arrival", s4u::this_actor::get_host(), [this, &receive] {
      s4u::this_actor::sleep_for(later_s_);
      finish(receive);
    });
  }

  static void finish(Operation& operation) {
    if (--operation.messages > 0) return;
    for (Operation* const follower : operation.followers) {
      if (--follower->waits > 0) continue;
      for (std::size_t m = 0; m < follower->messages; ++m) follower->ready->release();
    }
  }

  using Pair = std::pair<Rank, Rank>;
  Hosts hosts_;
  double later_s_;
  std::vector<std::vector<std::unique_ptr<Operation>>> operations_;  // of each rank, in order
  std::map<Pair, std::vector<std::pair<Operation*, double>>> sent_;  // with bytes
  std::map<Pair, std::vector<Operation*>> received_;
};

}  // namespace

bool has_simgrid() { return true; }

// A process can run only one simulation, so each runs in its own process.
Result<double> replay_on_simgrid(const Schedule& schedule, const cluster::Cluster& cluster,
                                 double bytes, NextMessage next) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return Status{Code::NoMemory, "cannot create a pipe"};
  std::fflush(nullptr);  // else the child would print it again
  const pid_t child = fork();
  if (child == 0) {
    s4u::Engine engine{"replay"};
    choose_plain_model();
    const double latency_s = cluster.constants.between.latency_s;
    const double in_links_s = next == NextMessage::OnceArrived ? latency_s : 0;
    Replay replay{schedule, build_fabric(cluster, schedule.shape.ranks, in_links_s), bytes,
                  latency_s - in_links_s};
    replay.start();
    engine.run();
    const double seconds = s4u::Engine::get_clock();
    _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
  }
  close(ends[1]);
  double seconds = 0;
  const bool received = read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!received || status != 0) return Status{Code::InvalidInput, "SimGrid failed"};
  return seconds;
}

}  // namespace sluice::simulate
