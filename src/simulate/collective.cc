#include "simulate/collective.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"

namespace sluice::simulate {
namespace {

// Schedules with more messages run step by step. A ring of 96 ranks has 18,240 messages.
constexpr double kMostEventMessages = 20000;
constexpr double kRounding = 1e-9;

double messages_of(const Algorithm& algorithm, const Shape& shape) {
  class Counting final : public TrafficSink {
   public:
    void message(Rank, Rank, double) override { ++of_step_; }
    void reduce(Rank, double) override {}
    void end_step(int repeat) override {
      all += of_step_ * repeat;
      of_step_ = 0;
    }
    double all = 0;

   private:
    double of_step_ = 0;
  } counting;
  algorithm.traffic(shape, counting);
  return counting.all;
}

}  // namespace

Result<CollectiveSimulator> CollectiveSimulator::on(const cluster::Cluster& cluster, int ranks,
                                                    const Conditions& conditions) {
  Result<FlowNetwork> network = FlowNetwork::of(cluster, ranks, conditions);
  if (!network.ok()) return network.status();
  return CollectiveSimulator{cluster, conditions, std::move(network).value(),
                             cluster.topology(ranks)};
}

Result<const FlowNetwork*> CollectiveSimulator::network_for(const Algorithm& algorithm) {
  auto known = networks_.find(algorithm.name);
  if (known == networks_.end()) {
    Result<FlowNetwork> network =
        FlowNetwork::of(cluster_, network_.ranks(), conditions_, algorithm.name);
    if (!network.ok()) return network.status();
    known = networks_.emplace(algorithm.name, std::move(network).value()).first;
  }
  return &known->second;
}

Result<const CollectiveSimulator::PreparedSchedule*> CollectiveSimulator::prepare(
    const Algorithm& algorithm, const Shape& shape, RunMethod method) {
  const std::string key = base::format("{} {} {} {} {} {}", algorithm.name, name(shape.collective),
                                       base::join(shape.grid, "+"), shape.root, shape.segments,
                                       static_cast<int>(method));
  if (const auto known = prepared_.find(key); known != prepared_.end()) return &known->second;
  if (algorithm.file != nullptr) {
    if (const Proof proof = prove(algorithm, shape); !proof.proven) {
      return Status{Code::NotProven, base::format("{} is not proven and will not run: {}",
                                                  algorithm.name, proof.reason)};
    }
  }
  const bool events =
      method == RunMethod::Events ||
      (method == RunMethod::Automatic && messages_of(algorithm, shape) <= kMostEventMessages);
  if (!events) {
    if (std::optional<StepTable> table = pack_steps(algorithm, shape))
      return &prepared_.emplace(key, std::move(*table)).first->second;
  }
  Result<Dataflow> flow = dataflow_of(build_schedule(algorithm, shape));
  if (!flow.ok()) return flow.status();
  return &prepared_.emplace(key, std::move(flow).value()).first->second;
}

Result<std::vector<double>> CollectiveSimulator::run(const Algorithm& algorithm, const Shape& shape,
                                                     const RunOptions& options, RunMethod method) {
  const Result<const PreparedSchedule*> prepared = prepare(algorithm, shape, method);
  if (!prepared.ok()) return prepared.status();
  const Result<const FlowNetwork*> own = network_for(algorithm);
  if (!own.ok()) return own.status();
  const FlowNetwork& network = *own.value();
  std::vector<double> done =
      std::holds_alternative<Dataflow>(*prepared.value())
          ? run_events(std::get<Dataflow>(*prepared.value()), network, options)
          : run_steps(std::get<StepTable>(*prepared.value()), network, options);
  const double last = *std::max_element(done.begin(), done.end());
  const double first = options.starts_s.empty()
                           ? 0
                           : *std::min_element(options.starts_s.begin(), options.starts_s.end());
  if (shape.collective == Collective::AllReduce) {
    const Status possible = check_all_reduce(network, options.bytes, last - first);
    if (!possible.ok()) return possible;
  }
  return done;
}

namespace {

int ranks_of(const Topology& topology) {
  return std::accumulate(topology.nodes.begin(), topology.nodes.end(), 0);
}

Result<std::vector<Candidate>> candidates_of(const ClusterScenario& scenario,
                                             const Topology& topology,
                                             const AllReduceOptions& options) {
  const Algorithm* wanted = nullptr;
  if (!options.algorithm.empty() && options.algorithm != "all") {
    const Result<const Algorithm*> found = find_algorithm(options.algorithm);
    if (!found.ok()) return found.status();
    wanted = found.value();
    const Shape asked{.ranks = ranks_of(topology)};
    if (wanted->file != nullptr) {
      if (const auto shape = complete_shape(*wanted, asked); !shape.ok()) return shape.status();
    }
  }
  const Selector selector{
      Collective::AllReduce,
      topology,
      scenario.cluster.constants,
      {.file = wanted != nullptr && wanted->file != nullptr ? wanted : nullptr}};
  std::vector<Candidate> all = selector.candidates(options.bytes);
  if (options.algorithm.empty()) all.resize(1);
  if (wanted != nullptr) {
    std::erase_if(all, [&](const Candidate& each) { return each.algorithm != wanted; });
    if (all.empty()) return no_candidate(options.algorithm, scenario.cluster);
  }
  for (Candidate& candidate : all) {
    if (scenario.grid_rows > 0 && candidate.algorithm->uses_grid) {
      Result<std::vector<int>> grid = grid_of(scenario, candidate.shape.ranks);
      if (!grid.ok()) return grid.status();
      candidate.shape.grid = std::move(grid).value();
      Result<Shape> shape = complete_shape(*candidate.algorithm, candidate.shape);
      if (!shape.ok()) return shape.status();
      candidate.shape = std::move(shape).value();
    }
    if (options.segments > 0 && candidate.algorithm->uses_segments)
      candidate.shape.segments = options.segments;
  }
  return all;
}

}  // namespace

Status no_candidate(std::string_view algorithm, const cluster::Cluster& cluster) {
  return {Code::InvalidArgument,
          base::format("algorithm {} is not available for an all_reduce on cluster {}: choose "
                       "another",
                       algorithm, cluster.name)};
}

Result<std::vector<AllReduceTime>> simulate_all_reduce(const ClusterScenario& scenario, int ranks,
                                                       const AllReduceOptions& options) {
  Result<CollectiveSimulator> simulator =
      CollectiveSimulator::on(scenario.cluster, ranks, scenario.conditions);
  if (!simulator.ok()) return simulator.status();
  const Topology& topology = simulator.value().topology();
  const Result<std::vector<Candidate>> candidates = candidates_of(scenario, topology, options);
  if (!candidates.ok()) return candidates.status();
  RunOptions run{.bytes = static_cast<double>(options.bytes)};
  if (scenario.jitter_s > 0) run.starts_s = jitter(scenario.jitter_s, scenario.seed, ranks);
  std::vector<AllReduceTime> times;
  for (const Candidate& candidate : candidates.value()) {
    const Result<std::vector<double>> done =
        simulator.value().run(*candidate.algorithm, candidate.shape, run);
    if (!done.ok()) return done.status();
    const double seconds = *std::max_element(done.value().begin(), done.value().end());
    const double bus = seconds > 0 ? 2.0 * (ranks - 1) / ranks * run.bytes / seconds : 0;
    times.push_back({candidate, ranks, topology.nodes.size(), seconds, bus});
  }
  std::stable_sort(times.begin(), times.end(), [](const AllReduceTime& a, const AllReduceTime& b) {
    return a.seconds < b.seconds;
  });
  return times;
}

Status check_all_reduce(const FlowNetwork& network, double bytes, double seconds) {
  const int parties = network.nodes() > 1 ? network.nodes() : network.ranks();
  if (parties == 1 || bytes <= 0) return {};
  const double bus_bytes = 2.0 * (parties - 1) / parties * bytes;
  const double bus = bus_bytes / seconds;
  if (bus <= network.node_bytes_per_s() * (1 + kRounding)) return {};
  return {
      Code::InvalidArgument,
      base::format(
          "the simulator is wrong: {:.4g} bytes over {} ranks in {:.4g} s is a bus bandwidth of "
          "{:.4g} GB/s on links of {:.4g} GB/s; report it as a bug",
          bytes, network.ranks(), seconds, bus / 1e9, network.node_bytes_per_s() / 1e9)};
}

Status check_scaling(const std::vector<ScalePoint>& points) {
  for (const ScalePoint& a : points) {
    for (const ScalePoint& b : points) {
      if (a.ranks < 2 || b.ranks < 2 * a.ranks || a.seconds != b.seconds) continue;
      return {Code::InvalidArgument,
              base::format("the simulator is wrong: {} ranks and {} ranks take exactly the same "
                           "{:.4g} s; report it as a bug",
                           a.ranks, b.ranks, a.seconds)};
    }
  }
  return {};
}

}  // namespace sluice::simulate
