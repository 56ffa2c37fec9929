// registry.cc - the table of the built-in algorithms, and the functions that read it.
#include <algorithm>

#include "algorithms/builtin.h"
#include "algorithms/schedule_file.h"
#include "base/format.h"
#include "base/text.h"
#include "schedule/marks.h"
#include "schedule/traffic.h"

namespace sluice {
namespace {

constexpr Collective kAllReduce[] = {Collective::AllReduce};
constexpr Collective kScatterGather[] = {Collective::AllReduce, Collective::ReduceScatter,
                                         Collective::AllGather};
constexpr Collective kRooted[] = {Collective::AllReduce, Collective::Broadcast, Collective::Reduce};

const Algorithm kRing{.name = "ring",
                      .version = 1,
                      .collectives = kScatterGather,
                      .program = algorithms::ring,
                      .steps = algorithms::ring_steps,
                      .sent = algorithms::ring_sent,
                      .traffic = algorithms::ring_traffic,
                      .marks = algorithms::ring_marks};

const Algorithm kRecursiveDoubling{.name = "recursive_doubling",
                                   .version = 1,
                                   .collectives = kAllReduce,
                                   .program = algorithms::recursive_doubling,
                                   .steps = algorithms::recursive_doubling_steps,
                                   .sent = algorithms::recursive_doubling_sent,
                                   .traffic = algorithms::recursive_doubling_traffic,
                                   .marks = algorithms::recursive_doubling_marks};

const Algorithm kHalvingDoubling{.name = "halving_doubling",
                                 .version = 1,
                                 .collectives = kScatterGather,
                                 .program = algorithms::halving_doubling_near,
                                 .steps = algorithms::halving_doubling_steps,
                                 .sent = algorithms::halving_doubling_sent,
                                 .traffic = algorithms::halving_doubling_near_traffic,
                                 .marks = algorithms::halving_doubling_marks};

const Algorithm kHalvingDoublingFar{.name = "halving_doubling:far",
                                    .version = 1,
                                    .collectives = kScatterGather,
                                    .program = algorithms::halving_doubling_far,
                                    .steps = algorithms::halving_doubling_steps,
                                    .sent = algorithms::halving_doubling_sent,
                                    .traffic = algorithms::halving_doubling_far_traffic,
                                    .marks = algorithms::halving_doubling_marks};

const Algorithm kTorus{.name = "torus",
                       .version = 1,
                       .collectives = kAllReduce,
                       .uses_grid = true,
                       .program = algorithms::torus,
                       .steps = algorithms::torus_steps,
                       .sent = algorithms::torus_sent,
                       .traffic = algorithms::torus_traffic,
                       .marks = algorithms::torus_marks};

const Algorithm kDoubleTree{.name = "double_tree",
                            .version = 2,
                            .collectives = kRooted,
                            .uses_segments = true,
                            .program = algorithms::double_tree,
                            .steps = algorithms::double_tree_steps,
                            .sent = algorithms::double_tree_sent,
                            .traffic = algorithms::double_tree_traffic,
                            .marks = algorithms::double_tree_marks};

const Algorithm kDirect{.name = "direct",
                        .version = 1,
                        .collectives = kCollectives,
                        .ordered = true,
                        .program = algorithms::direct,
                        .steps = algorithms::direct_steps,
                        .sent = algorithms::direct_sent,
                        .traffic = algorithms::direct_traffic,
                        .marks = algorithms::direct_marks};

const Algorithm kExchange{.name = "exchange",
                          .version = 1,
                          .collectives = kAllReduce,
                          .ordered = true,
                          .program = algorithms::exchange,
                          .steps = algorithms::exchange_steps,
                          .sent = algorithms::exchange_sent,
                          .traffic = algorithms::exchange_traffic,
                          .marks = algorithms::exchange_marks};

// Raised whenever the Program of hierarchical.cc changes. The version of the inner algorithm is
// added; both only grow, so no sum occurs twice.
constexpr int kHierarchicalVersion = 0;

template <const Algorithm& kInner>
Algorithm hierarchical_with(std::string_view name) {
  return {
      .name = name,
      .version = kHierarchicalVersion + kInner.version,
      .collectives = kAllReduce,
      .uses_grid = true,
      .uses_segments = kInner.uses_segments,
      .program = [](const Shape& shape,
                    Rank rank) { return algorithms::hierarchical(shape, rank, kInner); },
      .steps = [](const Shape& shape) { return algorithms::hierarchical_steps(shape, kInner); },
      .sent = [](const Shape& shape,
                 Rank rank) { return algorithms::hierarchical_sent(shape, rank, kInner); },
      .traffic = [](const Shape& shape,
                    TrafficSink& sink) { algorithms::hierarchical_traffic(shape, sink, kInner); },
      .marks = [](const Shape& shape,
                  Rank rank) { return algorithms::hierarchical_marks(shape, rank, kInner); }};
}

const Algorithm kAlgorithms[] = {
    kRing,
    kRecursiveDoubling,
    kHalvingDoubling,
    kHalvingDoublingFar,
    kTorus,
    kDoubleTree,
    hierarchical_with<kHalvingDoubling>("hierarchical"),
    hierarchical_with<kHalvingDoublingFar>("hierarchical:halving_doubling:far"),
    hierarchical_with<kRing>("hierarchical:ring"),
    hierarchical_with<kRecursiveDoubling>("hierarchical:recursive_doubling"),
    hierarchical_with<kTorus>("hierarchical:torus"),
    hierarchical_with<kDoubleTree>("hierarchical:double_tree"),
    hierarchical_with<kDirect>("hierarchical:direct"),
    kDirect,
    kExchange,
};

bool is_hierarchical(const Algorithm& algorithm) {
  return algorithm.name.starts_with("hierarchical");
}

std::string text_of(const std::vector<int>& grid) { return base::join(grid, "+"); }

Status check_grid(const Algorithm& algorithm, const Shape& shape) {
  std::int64_t sum = 0;
  for (const int ranks : shape.grid) {
    if (ranks < 1) {
      return {Code::InvalidArgument,
              base::format("grid {}: every node needs at least 1 rank", text_of(shape.grid))};
    }
    sum += ranks;
  }
  if (sum != shape.ranks) {
    return {Code::InvalidArgument,
            base::format("grid {} has {} ranks, not {}: give a grid of that many ranks",
                         text_of(shape.grid), sum, shape.ranks)};
  }
  if (is_hierarchical(algorithm)) return algorithms::check_hierarchical_grid(shape);
  if (std::any_of(shape.grid.begin(), shape.grid.end(),
                  [&](int ranks) { return ranks != shape.grid.front(); })) {
    return {Code::InvalidArgument,
            base::format("{} needs rows of equal length, not {}: use hierarchical for ragged nodes",
                         algorithm.name, text_of(shape.grid))};
  }
  return {};
}

}  // namespace

bool Algorithm::supports(Collective collective) const {
  return std::find(collectives.begin(), collectives.end(), collective) != collectives.end();
}

std::span<const Algorithm> built_in_algorithms() { return kAlgorithms; }

Result<const Algorithm*> find_algorithm(std::string_view name) {
  if (algorithms::names_file(name)) {
    const Algorithm& algorithm = algorithms::file_algorithm(name);
    if (!algorithm.file->status.ok()) return algorithm.file->status;
    return &algorithm;
  }
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) names.push_back(algorithm.name);
  const std::string_view nearest = base::nearest_name(name, names);
  return Status{
      Code::InvalidArgument,
      base::format("there is no algorithm {}: {}", base::quote(name),
                   nearest.empty() ? base::format("choose from {}", base::join(names, ", "))
                                   : base::format("did you mean {}?", nearest))};
}

Result<Shape> complete_shape(const Algorithm& algorithm, Shape shape) {
  const auto refuse = [&](std::string why) {
    return Status{Code::InvalidArgument, std::move(why)};
  };
  if (shape.ranks < 1) return refuse(base::format("ranks must be 1 or more, not {}", shape.ranks));
  if (!algorithm.supports(shape.collective)) {
    std::vector<std::string_view> supported;
    for (const Collective collective : algorithm.collectives) supported.push_back(name(collective));
    return refuse(base::format("{} does not support {}: it supports {}", algorithm.name,
                               name(shape.collective), base::join(supported, ", ")));
  }
  if (algorithm.file != nullptr) return algorithms::shape_of_file(algorithm, shape);
  if (!has_root(shape.collective)) shape.root = 0;
  if (shape.root < 0 || shape.root >= shape.ranks) {
    return refuse(base::format("root {} is not one of {} ranks", shape.root, shape.ranks));
  }
  if (!algorithm.uses_segments) shape.segments = 1;
  if (shape.segments < 1)
    return refuse(base::format("segments must be 1 or more, not {}", shape.segments));
  if (!algorithm.uses_grid) {
    shape.grid.clear();
  } else if (shape.grid.empty()) {
    shape.grid = most_square_grid(shape.ranks);
  } else if (Status status = check_grid(algorithm, shape); !status.ok()) {
    return status;
  }
  return shape;
}

Schedule build_schedule(const Algorithm& algorithm, const Shape& shape) {
  if (algorithm.file != nullptr) return algorithm.file->schedule;
  Schedule schedule{
      std::string{algorithm.name}, shape, algorithm.ordered, {}, algorithm.equal_chunks};
  schedule.programs.reserve(static_cast<std::size_t>(shape.ranks));
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    schedule.programs.push_back(algorithm.program(shape, rank));
  }
  return schedule;
}

Proof prove(const Algorithm& algorithm, const Shape& shape) {
  const Schedule schedule = build_schedule(algorithm, shape);
  std::vector<schedule::OperationMarks> marks;
  Proof proof = schedule::verify_and_mark(schedule, marks);
  if (!proof.proven || algorithm.file != nullptr) return proof;
  const auto refuse = [&](std::string reason) {
    proof.proven = false;
    proof.reason = std::move(reason);
    return proof;
  };
  if (proof.steps != algorithm.steps(shape)) {
    return refuse(base::format("it has {} steps, but the closed form of {} says {}", proof.steps,
                               algorithm.name, algorithm.steps(shape)));
  }
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    const Fraction sent = sent_share(schedule.programs[static_cast<std::size_t>(rank)]);
    if (sent != algorithm.sent(shape, rank)) {
      return refuse(
          base::format("rank {} sends {} of the buffer, but the closed form of {} says {}", rank,
                       to_string(sent), algorithm.name, to_string(algorithm.sent(shape, rank))));
    }
    const auto r = static_cast<std::size_t>(rank);
    if (schedule::apply(algorithm.marks(shape, rank), schedule.programs[r]) != marks[r]) {
      return refuse(
          base::format("rank {} has other whole sums or pushes than the closed form of {} says",
                       rank, algorithm.name));
    }
  }
  return proof;
}

Load load_of(const Algorithm& algorithm, const Shape& shape, const Topology& topology) {
  schedule::Traffic traffic{topology};
  algorithm.traffic(shape, traffic);
  return traffic.take();
}

std::vector<int> most_square_grid(int ranks) {
  int rows = 1;
  for (int x = 1; x * x <= ranks; ++x) {
    if (ranks % x == 0) rows = x;
  }
  return std::vector<int>(static_cast<std::size_t>(rows), ranks / rows);
}

}  // namespace sluice
