#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "engine/select/choices.h"
#include "engine/select/constants.h"

namespace sluice::engine {
namespace {

// Rank 0 knows them, or they are measured now.
CostConstants agree_on_one_node(Communicator& communicator,
                                const bootstrap::Environment& environment) {
  const std::filesystem::path file = constants_path(environment, communicator.size());
  std::optional<CostConstants> constants;
  if (communicator.rank() == 0) constants = load_constants(file);
  std::int32_t known = constants ? 1 : 0;
  communicator.broadcast(&known, 1, {.type = DataType::I32}).wait();
  if (known == 0) {
    constants = measure_constants(communicator);
    if (communicator.rank() == 0 && plausible(*constants))
      save_constants(file, *constants, communicator.size());
  }
  return hand_out(communicator, constants.value_or(CostConstants{}));
}

// The switch of every node, as the cluster file has it; hosts that it does not name are behind one
// of their own.
std::vector<std::int32_t> switches_of(const transport::Group& group,
                                      const std::optional<cluster::Cluster>& cluster) {
  std::vector<std::int32_t> switches;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    const transport::RankLocation& place = group.location(rank);
    if (static_cast<std::size_t>(place.node) < switches.size()) continue;
    switches.push_back(cluster ? cluster->switch_of(place.host, place.address) : 0);
  }
  return switches;
}

// Rank 0's links, at every rank.
CostConstants hand_out_links(Communicator& communicator, const CostConstants& constants) {
  double numbers[] = {constants.inside.latency_s, constants.inside.bandwidth_bytes_per_s,
                      constants.between.latency_s, constants.between.bandwidth_bytes_per_s,
                      constants.reduce_s_per_byte};
  communicator.broadcast(numbers, std::size(numbers), {.type = DataType::F64}).wait();
  return {.inside = {numbers[0], numbers[1]},
          .between = {numbers[2], numbers[3]},
          .reduce_s_per_byte = numbers[4]};
}

Choices agree_between_nodes(Communicator& communicator, const transport::Group& group,
                            const bootstrap::Environment& environment,
                            std::vector<AlgorithmOverride> overrides) {
  std::optional<cluster::Cluster> cluster;
  const auto file = environment.text(bootstrap::variable::kTopology);
  if (communicator.rank() == 0 && file) cluster = cluster::find_cluster(*file).value();
  std::vector<std::int32_t> switches = switches_of(group, cluster);
  communicator.broadcast(switches.data(), switches.size(), {.type = DataType::I32}).wait();
  RankOrder order{group, switches};

  std::int32_t given = cluster ? 1 : 0;
  communicator.broadcast(&given, 1, {.type = DataType::I32}).wait();
  const CostConstants constants =
      given != 0 ? hand_out_links(communicator, cluster ? cluster->constants : CostConstants{})
                 : measure_network(communicator, order.topology(Collective::AllReduce));
  if (communicator.rank() == 0) {
    const Link& link = constants.between;
    base::log_info(base::format("between nodes {:.3g} Gbit/s, {:.3g} us a message{} ({})",
                                link.bandwidth_bytes_per_s * 8e-9, link.latency_s * 1e6,
                                link.overlap > 0.5 ? ", hidden behind bytes" : "",
                                given != 0 ? *file : "measured"));
  }
  group.network()->set_link(constants.between);
  Choices choices{std::move(order), communicator.rank(), constants, std::move(overrides)};
  if (communicator.rank() == 0)
    base::log_info("all_reduce by " + choices.describe(Collective::AllReduce));
  return choices;
}

}  // namespace

Choices agreed_choices(Communicator& communicator, const transport::Group& group,
                       const bootstrap::Environment& environment) {
  std::vector<AlgorithmOverride> overrides = overrides_of(environment).value();
  if (group.network() != nullptr)
    return agree_between_nodes(communicator, group, environment, std::move(overrides));
  return {RankOrder{group}, group.rank(), agree_on_one_node(communicator, environment),
          std::move(overrides)};
}

}  // namespace sluice::engine
