// fair_share.h - how flows share links: max-min fairly.
//
// No flow can have more without taking it from one that has no more than itself. Rates are found by
// filling all flows alike until a link is full, keeping those that cross it where they are, and
// going on with the others.
#pragma once

#include <span>
#include <vector>

#include "simulate/flow_network.h"

namespace sluice::simulate {

// Ways of flows, one after the other.
struct FlowSet {
  std::vector<LinkId> links;
  std::vector<std::uint32_t> ends;  // of each flow's links

  std::size_t count() const { return ends.size(); }
  void clear() {
    links.clear();
    ends.clear();
  }
  std::span<const LinkId> of(std::size_t flow) const {
    const std::uint32_t begin = flow == 0 ? 0 : ends[flow - 1];
    return std::span{links}.subspan(begin, ends[flow] - begin);
  }
};

// Keeps its memory from one question to the next.
class FairShare {
 public:
  explicit FairShare(std::span<const double> bytes_per_s);

  // Bytes a second of every flow. REQUIRES: every flow crosses a link.
  const std::vector<double>& rates(const FlowSet& flows);

 private:
  struct Use {
    double left = 0;         // of the rate, for flows that are not settled
    std::uint32_t open = 0;  // such flows
    std::uint32_t begin = 0;
    std::uint32_t end = 0;  // of its flows in crossing_
  };
  void count_uses(const FlowSet& flows);

  std::span<const double> bytes_per_s_;
  std::vector<Use> uses_;     // by link
  std::vector<LinkId> used_;  // links with flows that are not settled
  std::vector<std::uint32_t> crossing_;
  std::vector<double> rates_;
};

}  // namespace sluice::simulate
