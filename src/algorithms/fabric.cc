#include "algorithms/fabric.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "sluice/algorithms.h"

namespace sluice::algorithms {
namespace {

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

Fabric::Fabric(const CostConstants& constants, const Topology& topology)
    : shape_{constants.network}, inside_{constants.inside}, between_{constants.between} {
  nodes_ = static_cast<int>(topology.nodes.size());
  const int most =
      topology.nodes.empty() ? 0 : *std::max_element(topology.nodes.begin(), topology.nodes.end());
  nics_ = shape_.striped ? 1 : shape_.nics;
  for (int node = 0; node < nodes_; ++node) {
    for (int device = 0; device < topology.nodes[static_cast<std::size_t>(node)]; ++device) {
      const bool named = !shape_.striped && device < static_cast<int>(shape_.nic_of.size());
      const int nic =
          named ? shape_.nic_of[static_cast<std::size_t>(device)] : device * nics_ / most;
      node_of_.push_back(node);
      nic_of_.push_back(node * nics_ + nic);
    }
  }
  if (shape_.torus.empty()) {
    add_switched(constants);
  } else {
    add_torus(constants);
  }
}

LinkId Fabric::add(int count, double bytes_per_s) {
  const auto first = static_cast<LinkId>(bytes_per_s_.size());
  bytes_per_s_.resize(bytes_per_s_.size() + static_cast<std::size_t>(count), bytes_per_s);
  return first;
}

void Fabric::add_switched(const CostConstants& constants) {
  const double inside = constants.inside.bandwidth_bytes_per_s;
  const double between = constants.between.bandwidth_bytes_per_s;
  ports_ = add(2 * ranks(), inside);
  if (shape_.staging_bytes_per_s > 0) staging_ = add(nodes_, shape_.staging_bytes_per_s);
  if (shape_.bridge_bytes_per_s > 0) bridge_ = add(nodes_, shape_.bridge_bytes_per_s);
  first_between_ = first_nic_ = add(2 * nodes_ * nics_, between / nics_);
  for (const SwitchLevel& level : shape_.levels) {
    uplinks_.push_back(
        add(2 * ceil_div(nodes_, level.nodes), between * level.nodes / level.oversubscription));
  }
  node_bytes_per_s_ = nodes_ > 1 ? between : inside;
}

void Fabric::add_torus(const CostConstants& constants) {
  // If the ranks use only a part of the machine, assume that it is as square as possible.
  std::vector<int>& torus = shape_.torus;
  if (std::accumulate(torus.begin(), torus.end(), 1, std::multiplies<>{}) != ranks()) {
    const std::vector<int> rows = most_square_grid(ranks());
    torus = {static_cast<int>(rows.size()), rows.front()};
  }
  const int dimensions = static_cast<int>(torus.size());
  const double bytes_per_s = constants.between.bandwidth_bytes_per_s;
  first_between_ = torus_ = add(2 * ranks() * dimensions, bytes_per_s);
  node_bytes_per_s_ = 2 * static_cast<double>(dimensions) * bytes_per_s;
}

std::vector<LinkId> Fabric::links_of(int node) const {
  std::vector<LinkId> links;
  if (torus_ < 0) {
    for (int k = 0; k < nics_; ++k) {
      links.push_back(first_nic_ + node * nics_ + k);
      links.push_back(first_nic_ + (nodes_ + node) * nics_ + k);
    }
    return links;
  }
  int stride = 1;
  for (int d = static_cast<int>(shape_.torus.size()) - 1; d >= 0; --d) {
    const int extent = shape_.torus[static_cast<std::size_t>(d)];
    const int x = node / stride % extent;
    const int below = node + ((x + extent - 1) % extent - x) * stride;
    const int above = node + ((x + 1) % extent - x) * stride;
    for (const LinkId link : {torus_link(node, d, true), torus_link(node, d, false),
                              torus_link(below, d, true), torus_link(above, d, false)})
      links.push_back(link);
    stride *= extent;
  }
  return links;
}

LinkId Fabric::torus_link(int node, int dimension, bool up) const {
  return torus_ + (node * static_cast<int>(shape_.torus.size()) + dimension) * 2 + (up ? 0 : 1);
}

LinkId Fabric::nic_of(Rank rank) const { return nic_of_[static_cast<std::size_t>(rank)]; }

double Fabric::gap_s(Rank from, Rank to) const {
  return torus_ < 0 && same_node(from, to) ? inside_.gap_s : between_.gap_s;
}

double Fabric::route(Rank from, Rank to, std::vector<LinkId>& links) const {
  if (torus_ >= 0) return torus_route(from, to, links);
  const int a = node_of_[static_cast<std::size_t>(from)];
  const int b = node_of_[static_cast<std::size_t>(to)];
  if (staging_ >= 0) links.push_back(staging_ + a);
  if (a == b) {
    links.push_back(ports_ + from);
    if (bridge_ >= 0) links.push_back(bridge_ + a);
    links.push_back(ports_ + ranks() + to);
    return inside_.latency_s;
  }
  if (staging_ >= 0) links.push_back(staging_ + b);
  double latency_s = between_.latency_s;
  links.push_back(first_nic_ + nic_of(from));
  for (std::size_t k = 0; k < uplinks_.size(); ++k) {
    const SwitchLevel& level = shape_.levels[k];
    const int groups = ceil_div(nodes_, level.nodes);
    if (a / level.nodes == b / level.nodes) break;
    links.push_back(uplinks_[k] + a / level.nodes);
    links.push_back(uplinks_[k] + groups + b / level.nodes);
    latency_s += 2 * level.latency_s;
  }
  links.push_back(first_nic_ + nodes_ * nics_ + nic_of(to));
  return latency_s;
}

double Fabric::torus_route(int from, int to, std::vector<LinkId>& links) const {
  int hops = 0;
  int stride = 1;
  int at = from;
  for (int d = static_cast<int>(shape_.torus.size()) - 1; d >= 0; --d) {
    const int extent = shape_.torus[static_cast<std::size_t>(d)];
    int x = at / stride % extent;
    const int goal = to / stride % extent;
    const int forward = (goal - x + extent) % extent;
    const bool up = 2 * forward <= extent;
    while (x != goal) {
      links.push_back(torus_link(at, d, up));
      const int next = (x + (up ? 1 : extent - 1)) % extent;
      at += (next - x) * stride;
      x = next;
      ++hops;
    }
    stride *= extent;
  }
  return between_.latency_s + (hops - 1) * shape_.hop_latency_s;
}

}  // namespace sluice::algorithms
