#include "simulate/fair_share.h"

#include <algorithm>
#include <limits>

namespace sluice::simulate {
namespace {

constexpr double kOpen = -1;
// Links that fill up this close together fill up at once: sums of rates round.
constexpr double kTie = 1 + 1e-12;

}  // namespace

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
