#include "simulate/flow_network.h"

#include <algorithm>
#include <limits>

#include "base/format.h"

namespace sluice::simulate {
namespace {

// The rate of a flow that is not fixed yet.
constexpr double kOpen = -1;
// Links whose fair rates differ by at most this factor count as full at once: sums of rates round.
constexpr double kTie = 1 + 1e-12;

}  // namespace

Result<FlowNetwork> FlowNetwork::of(const cluster::Cluster& cluster, int ranks,
                                    const Conditions& conditions, std::string_view algorithm) {
  const auto refuse = [](std::string why) { return Status{Code::InvalidArgument, std::move(why)}; };
  if (ranks < 1) return refuse(base::format("ranks must be 1 or more, not {}", ranks));
  if (!(conditions.background >= 0 && conditions.background < 1)) {
    return refuse(
        base::format("a background load of {} leaves nothing of a link: use a fraction "
                     "from 0 to less than 1",
                     conditions.background));
  }
  const CostConstants constants = cluster.constants.for_algorithm(algorithm);
  FlowNetwork network{algorithms::Fabric{constants, cluster.topology(ranks)}};
  const algorithms::Fabric& fabric = network.fabric_;
  network.reduce_s_per_byte_ = constants.reduce_s_per_byte;
  if (conditions.slow_node >= network.nodes()) {
    return refuse(base::format("slow_node {} does not exist: {} ranks use nodes 0 to {}",
                               conditions.slow_node, ranks, network.nodes() - 1));
  }
  if (conditions.slow_node >= 0 && !(conditions.slow_part > 0 && conditions.slow_part <= 1)) {
    return refuse(base::format("slow_part of node {} is {}: use a fraction above 0, at most 1",
                               conditions.slow_node, conditions.slow_part));
  }
  network.bytes_per_s_.assign(fabric.bytes_per_s().begin(), fabric.bytes_per_s().end());
  std::vector<double>& rates = network.bytes_per_s_;
  const double free = 1 - conditions.background;
  for (auto i = static_cast<std::size_t>(fabric.first_between()); i < rates.size(); ++i)
    rates[i] *= free;
  if (conditions.slow_node >= 0) {
    for (const LinkId link : fabric.links_of(conditions.slow_node)) {
      const auto i = static_cast<std::size_t>(link);
      rates[i] = fabric.bytes_per_s()[i] * free * conditions.slow_part;
    }
  }
  const bool several = network.nodes() > 1;
  network.node_bytes_per_s_ = fabric.node_bytes_per_s() * (several ? free : 1);
  return network;
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
