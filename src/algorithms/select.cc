#include "sluice/analysis/select.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr int kMostSegments = 1024;

int ranks_of(const Topology& topology) {
  int ranks = 0;
  for (const int node : topology.nodes) ranks += node;
  return ranks;
}

// The nodes as a grid, if it helps: there are several nodes, and at least one has several ranks.
std::vector<int> grid_of(const Topology& topology) {
  const bool several = std::any_of(topology.nodes.begin(), topology.nodes.end(),
                                   [](int ranks) { return ranks > 1; });
  return several && topology.nodes.size() > 1 ? topology.nodes : std::vector<int>{};
}

}  // namespace

Result<Shape> shape_on(const Algorithm& algorithm, Shape shape, const Topology& topology) {
  shape.grid = grid_of(topology);
  Result<Shape> with_grid = complete_shape(algorithm, shape);
  if (with_grid.ok()) return with_grid;
  // A torus cannot use ragged nodes: it gets the most square grid instead.
  shape.grid.clear();
  return complete_shape(algorithm, shape);
}

Selector::Selector(Collective collective, const Topology& topology, const CostConstants& constants,
                   const SelectorOptions& options) {
  const Shape requested{collective, ranks_of(topology), {}, options.root, 1};
  // Measured and estimated times cannot be compared.
  const bool measured_only = !constants.measured.empty();
  for (const Algorithm& algorithm : built_in_algorithms()) algorithms_.push_back(&algorithm);
  if (options.file != nullptr) algorithms_.push_back(options.file);
  for (const Algorithm* const each : algorithms_) {
    const Algorithm& algorithm = *each;
    if (!algorithm.supports(collective)) continue;
    const MeasuredLink* const measured = constants.measured_for(algorithm.name);
    if (measured_only && measured == nullptr) continue;
    const std::int64_t most_bytes =
        measured != nullptr ? measured->most_bytes : std::numeric_limits<std::int64_t>::max();
    const Result<Shape> shape = shape_on(algorithm, requested, topology);
    if (!shape.ok()) throw Error{shape.status()};
    // Measurements are made with one segment.
    const bool in_segments = algorithm.uses_segments && !measured_only;
    for (int segments = 1; segments <= (in_segments ? kMostSegments : 1); segments *= 2) {
      Shape with_segments = shape.value();
      with_segments.segments = segments;
      Priced& priced = priced_.emplace_back();
      priced.algorithm = &algorithm;
      priced.shape = with_segments;
      priced.most_bytes = most_bytes;
      if (measured_only) {
        priced.load = load_of(algorithm, with_segments, topology);
        priced.constants = constants.for_algorithm(algorithm.name);
      } else {
        priced.curve = predict_time(algorithm, with_segments, topology, constants);
      }
    }
  }
}

Candidate Selector::cheapest(const Algorithm& algorithm, std::int64_t bytes) const {
  Candidate best;
  for (const Priced& priced : priced_) {
    if (priced.algorithm != &algorithm || bytes > priced.most_bytes) continue;
    const auto size = static_cast<double>(bytes);
    const double seconds = priced.load.empty()
                               ? priced.curve.at(size)
                               : predict_seconds(priced.load, size, priced.constants);
    if (best.algorithm == nullptr || seconds < best.seconds)
      best = {&algorithm, priced.shape, seconds};
  }
  return best;
}

std::vector<Candidate> Selector::candidates(std::int64_t bytes) const {
  std::vector<Candidate> candidates;
  for (const Algorithm* const algorithm : algorithms_) {
    Candidate candidate = cheapest(*algorithm, bytes);
    if (candidate.algorithm != nullptr) candidates.push_back(std::move(candidate));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  return candidates;
}

Candidate Selector::choose(std::int64_t bytes) const { return candidates(bytes).front(); }

template <class Same>
std::vector<Selector::Crossover> Selector::find_crossovers(std::int64_t least, std::int64_t most,
                                                           Same&& same) const {
  std::vector<Crossover> crossovers{{least, choose(least)}};
  for (std::int64_t low = least; low < most;) {
    const std::int64_t high = std::min(most, std::max(low + 1, low + low / 2));
    // If the choice for `high` differs, finds the smallest size in (low, high] that differs.
    if (!same(choose(high), crossovers.back().candidate)) {
      std::int64_t unchanged = low;
      std::int64_t changed = high;
      while (changed - unchanged > 1) {
        const std::int64_t middle = unchanged + (changed - unchanged) / 2;
        (same(choose(middle), crossovers.back().candidate) ? unchanged : changed) = middle;
      }
      crossovers.push_back({changed, choose(changed)});
      low = changed;
    } else {
      low = high;
    }
  }
  return crossovers;
}

std::vector<Selector::Crossover> Selector::crossovers(std::int64_t least, std::int64_t most) const {
  return find_crossovers(least, most, [](const Candidate& a, const Candidate& b) {
    return a.algorithm == b.algorithm;
  });
}

std::vector<Selector::Crossover> Selector::shape_crossovers(std::int64_t least,
                                                            std::int64_t most) const {
  return find_crossovers(least, most, [](const Candidate& a, const Candidate& b) {
    return a.algorithm == b.algorithm && a.shape == b.shape;
  });
}

}  // namespace sluice
