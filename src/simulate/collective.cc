#include "simulate/collective.h"

#include <algorithm>

#include "base/format.h"
#include "simulate/step_run.h"
#include "simulate/uncertainty.h"

namespace sluice::simulate {
namespace {

// Beyond, events are too many: a ring of 96 ranks has 18,240 messages.
constexpr double kMostEventMessages = 20000;

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
  Result<FlowNetwork> trees = FlowNetwork::of(cluster, ranks, conditions, true);
  if (!trees.ok()) return trees.status();
  return CollectiveSimulator{std::move(network).value(), std::move(trees).value(),
                             cluster.topology(ranks)};
}

Result<const CollectiveSimulator::Unfolded*> CollectiveSimulator::unfold(const Algorithm& algorithm,
                                                                         const Shape& shape,
                                                                         RunMethod method) {
  const std::string key = base::format("{} {} {} {} {} {}", algorithm.name, name(shape.collective),
                                       base::join(shape.grid, "+"), shape.root, shape.segments,
                                       static_cast<int>(method));
  if (const auto known = unfolded_.find(key); known != unfolded_.end()) return &known->second;
  const bool events =
      method == RunMethod::Events ||
      (method == RunMethod::Automatic && messages_of(algorithm, shape) <= kMostEventMessages);
  if (!events) {
    if (std::optional<StepTable> table = pack_steps(algorithm, shape))
      return &unfolded_.emplace(key, std::move(*table)).first->second;
  }
  Result<Dataflow> flow = dataflow_of(build_schedule(algorithm, shape));
  if (!flow.ok()) return flow.status();
  return &unfolded_.emplace(key, std::move(flow).value()).first->second;
}

Result<std::vector<double>> CollectiveSimulator::run(const Algorithm& algorithm, const Shape& shape,
                                                     const RunOptions& options, RunMethod method) {
  const Result<const Unfolded*> unfolded = unfold(algorithm, shape, method);
  if (!unfolded.ok()) return unfolded.status();
  const bool trees = algorithm.name.find("tree") != std::string_view::npos;
  const FlowNetwork& network = trees ? tree_network_ : network_;
  std::vector<double> done =
      std::holds_alternative<Dataflow>(*unfolded.value())
          ? run_events(std::get<Dataflow>(*unfolded.value()), network, options)
          : run_steps(std::get<StepTable>(*unfolded.value()), network, options);
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

}  // namespace sluice::simulate
