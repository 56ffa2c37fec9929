#include "simulate/flow_network.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "base/format.h"
#include "sluice/algorithms.h"

namespace sluice::simulate {
namespace {

// The rate of a flow that is not fixed yet.
constexpr double kOpen = -1;
// Links whose fair rates differ by at most this factor count as full at once: sums of rates round.
constexpr double kTie = 1 + 1e-12;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

LinkId FlowNetwork::add(int count, double bytes_per_s) {
  const auto first = static_cast<LinkId>(bytes_per_s_.size());
  bytes_per_s_.resize(bytes_per_s_.size() + static_cast<std::size_t>(count), bytes_per_s);
  return first;
}

Result<FlowNetwork> FlowNetwork::of(const cluster::Cluster& cluster, int ranks,
                                    const Conditions& conditions, bool trees) {
  const auto refuse = [](std::string why) { return Status{Code::InvalidArgument, std::move(why)}; };
  if (ranks < 1) return refuse(base::format("ranks must be 1 or more, not {}", ranks));
  if (!(conditions.background >= 0 && conditions.background < 1)) {
    return refuse(
        base::format("a background load of {} leaves nothing of a link: use a fraction "
                     "from 0 to less than 1",
                     conditions.background));
  }
  FlowNetwork network;
  network.ranks_ = ranks;
  network.ranks_per_node_ = cluster.ranks_per_node;
  network.nodes_ = ceil_div(ranks, cluster.ranks_per_node);
  network.shape_ = cluster.network;
  network.reduce_s_per_byte_ = cluster.constants.reduce_s_per_byte;
  network.inside_latency_s_ = cluster.constants.inside.latency_s;
  network.between_latency_s_ = cluster.constants.between.latency_s;
  if (trees && cluster.network.tree_latency_s > 0)
    network.between_latency_s_ = cluster.network.tree_latency_s;
  if (conditions.slow_node >= network.nodes_) {
    return refuse(base::format("slow_node {} does not exist: {} ranks use nodes 0 to {}",
                               conditions.slow_node, ranks, network.nodes_ - 1));
  }
  if (conditions.slow_node >= 0 && !(conditions.slow_part > 0 && conditions.slow_part <= 1)) {
    return refuse(base::format("slow_part of node {} is {}: use a fraction above 0, at most 1",
                               conditions.slow_node, conditions.slow_part));
  }
  if (cluster.network.torus.empty()) {
    network.add_switched(cluster, conditions);
  } else {
    network.add_torus(cluster, conditions);
  }
  return network;
}

void FlowNetwork::add_switched(const cluster::Cluster& cluster, const Conditions& conditions) {
  const double inside = cluster.constants.inside.bandwidth_bytes_per_s;
  const double between =
      cluster.constants.between.bandwidth_bytes_per_s * (1 - conditions.background);
  const int nics = shape_.striped ? 1 : shape_.nics;
  ports_ = add(2 * ranks_, inside);
  nics_ = add(2 * nodes_ * nics, between / nics);
  if (conditions.slow_node >= 0) {
    for (const int direction : {0, 1}) {
      for (int k = 0; k < nics; ++k) {
        const int link = nics_ + (direction * nodes_ + conditions.slow_node) * nics + k;
        bytes_per_s_[static_cast<std::size_t>(link)] *= conditions.slow_part;
      }
    }
  }
  if (shape_.staging_bytes_per_s > 0) staging_ = add(nodes_, shape_.staging_bytes_per_s);
  if (shape_.bridge_bytes_per_s > 0) bridge_ = add(nodes_, shape_.bridge_bytes_per_s);
  for (const cluster::SwitchLevel& level : shape_.levels) {
    uplinks_.push_back(
        add(2 * ceil_div(nodes_, level.nodes), between * level.nodes / level.oversubscription));
  }
  node_bytes_per_s_ = nodes_ > 1 ? between : inside;
}

void FlowNetwork::add_torus(const cluster::Cluster& cluster, const Conditions& conditions) {
  // If the ranks use only a part of the machine, assume that it is as square as possible.
  std::vector<int>& torus = shape_.torus;
  if (std::accumulate(torus.begin(), torus.end(), 1, std::multiplies<>{}) != ranks_) {
    const std::vector<int> rows = most_square_grid(ranks_);
    torus = {static_cast<int>(rows.size()), rows.front()};
  }
  const int dimensions = static_cast<int>(torus.size());
  const double bytes_per_s =
      cluster.constants.between.bandwidth_bytes_per_s * (1 - conditions.background);
  torus_ = add(2 * nodes_ * dimensions, bytes_per_s);
  node_bytes_per_s_ = 2 * static_cast<double>(dimensions) * bytes_per_s;
  inside_latency_s_ = cluster.constants.between.latency_s;
  if (conditions.slow_node < 0) return;
  int stride = 1;
  for (int d = dimensions - 1; d >= 0; --d) {
    const int extent = torus[static_cast<std::size_t>(d)];
    const int x = conditions.slow_node / stride % extent;
    const int below = conditions.slow_node + ((x + extent - 1) % extent - x) * stride;
    const int above = conditions.slow_node + ((x + 1) % extent - x) * stride;
    for (const std::size_t link :
         {torus_link(conditions.slow_node, d, true), torus_link(conditions.slow_node, d, false),
          torus_link(below, d, true), torus_link(above, d, false)})
      bytes_per_s_[link] = bytes_per_s * conditions.slow_part;
    stride *= extent;
  }
}

std::size_t FlowNetwork::torus_link(int node, int dimension, bool up) const {
  const std::size_t pair =
      static_cast<std::size_t>(node) * shape_.torus.size() + static_cast<std::size_t>(dimension);
  return static_cast<std::size_t>(torus_) + pair * 2 + (up ? 0 : 1);
}

int FlowNetwork::nic_of(Rank rank) const {
  const int local = rank % ranks_per_node_;
  const int nics = shape_.striped ? 1 : shape_.nics;
  const int nic = shape_.nic_of.empty() || shape_.striped
                      ? local * nics / ranks_per_node_
                      : shape_.nic_of[static_cast<std::size_t>(local)];
  return rank / ranks_per_node_ * nics + nic;
}

double FlowNetwork::route(Rank from, Rank to, std::vector<LinkId>& links) const {
  if (torus_ >= 0) return torus_route(from, to, links);
  const int a = from / ranks_per_node_;
  const int b = to / ranks_per_node_;
  if (staging_ >= 0) links.push_back(staging_ + a);
  if (a == b) {
    links.push_back(ports_ + from);
    if (bridge_ >= 0) links.push_back(bridge_ + a);
    links.push_back(ports_ + ranks_ + to);
    return inside_latency_s_;
  }
  if (staging_ >= 0) links.push_back(staging_ + b);
  const int nics = shape_.striped ? 1 : shape_.nics;
  double latency = between_latency_s_;
  links.push_back(nics_ + nic_of(from));
  for (std::size_t k = 0; k < uplinks_.size(); ++k) {
    const cluster::SwitchLevel& level = shape_.levels[k];
    const int groups = ceil_div(nodes_, level.nodes);
    if (a / level.nodes == b / level.nodes) break;
    links.push_back(uplinks_[k] + a / level.nodes);
    links.push_back(uplinks_[k] + groups + b / level.nodes);
    latency += 2 * level.latency_s;
  }
  links.push_back(nics_ + nodes_ * nics + nic_of(to));
  return latency;
}

double FlowNetwork::torus_route(int from, int to, std::vector<LinkId>& links) const {
  const int dimensions = static_cast<int>(shape_.torus.size());
  int hops = 0;
  int stride = 1;
  int at = from;
  for (int d = dimensions - 1; d >= 0; --d) {
    const int extent = shape_.torus[static_cast<std::size_t>(d)];
    int x = at / stride % extent;
    const int goal = to / stride % extent;
    const int forward = (goal - x + extent) % extent;
    const bool up = 2 * forward <= extent;
    while (x != goal) {
      links.push_back(static_cast<LinkId>(torus_link(at, d, up)));
      const int next = (x + (up ? 1 : extent - 1)) % extent;
      at += (next - x) * stride;
      x = next;
      ++hops;
    }
    stride *= extent;
  }
  return between_latency_s_ + (hops - 1) * shape_.hop_latency_s;
}

FairShare::FairShare(std::span<const double> bytes_per_s)
    : bytes_per_s_{bytes_per_s}, uses_(bytes_per_s.size()) {}

void FairShare::count_uses(const FlowSet& flows) {
  used_.clear();
  for (const LinkId link : flows.links) {
    Use& use = uses_[static_cast<std::size_t>(link)];
    if (use.open++ == 0) {
      used_.push_back(link);
      use.left = bytes_per_s_[static_cast<std::size_t>(link)];
    }
  }
  std::uint32_t begin = 0;
  for (const LinkId link : used_) {
    Use& use = uses_[static_cast<std::size_t>(link)];
    use.begin = use.end = begin;
    begin += use.open;
  }
  crossing_.resize(begin);
  for (std::size_t flow = 0; flow < flows.count(); ++flow) {
    for (const LinkId link : flows.of(flow))
      crossing_[uses_[static_cast<std::size_t>(link)].end++] = static_cast<std::uint32_t>(flow);
  }
}

const std::vector<double>& FairShare::rates(const FlowSet& flows) {
  count_uses(flows);
  rates_.assign(flows.count(), kOpen);
  std::size_t open = flows.count();
  while (open > 0) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t kept = 0;
    for (const LinkId link : used_) {
      const Use& use = uses_[static_cast<std::size_t>(link)];
      if (use.open == 0) continue;
      least = std::min(least, use.left / use.open);
      used_[kept++] = link;
    }
    used_.resize(kept);
    for (const LinkId link : used_) {
      Use& full = uses_[static_cast<std::size_t>(link)];
      if (full.open == 0 || full.left / full.open > least * kTie) continue;
      for (std::uint32_t i = full.begin; i < full.end; ++i) {
        const std::uint32_t flow = crossing_[i];
        if (rates_[flow] != kOpen) continue;
        rates_[flow] = least;
        --open;
        for (const LinkId each : flows.of(flow)) {
          Use& use = uses_[static_cast<std::size_t>(each)];
          use.left = std::max(0.0, use.left - least);
          --use.open;
        }
      }
    }
  }
  return rates_;
}

}  // namespace sluice::simulate
