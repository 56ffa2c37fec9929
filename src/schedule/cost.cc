#include "sluice/analysis/cost.h"

#include <algorithm>
#include <map>
#include <utility>

#include "schedule/traffic.h"
#include "sluice/verify.h"

namespace sluice {

Topology Topology::flat(int ranks) {
  return {std::vector<int>(static_cast<std::size_t>(ranks), 1)};
}

namespace schedule {

Traffic::Traffic(const Topology& topology) {
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    node_of_.insert(node_of_.end(), static_cast<std::size_t>(topology.nodes[node]),
                    static_cast<int>(node));
  }
  inside_.resize(node_of_.size());
  between_.resize(node_of_.size());
  node_link_.resize(topology.nodes.size());
  reduced_.resize(node_of_.size());
}

void Traffic::message(Rank from, Rank to, double share) {
  const auto f = static_cast<std::size_t>(from);
  const auto t = static_cast<std::size_t>(to);
  const bool same_node = node_of_[f] == node_of_[t];
  auto& ranks = same_node ? inside_ : between_;
  ++ranks[f].messages_out;
  ++ranks[t].messages_in;
  auto& port_out = same_node ? inside_[f] : node_link_[static_cast<std::size_t>(node_of_[f])];
  auto& port_in = same_node ? inside_[t] : node_link_[static_cast<std::size_t>(node_of_[t])];
  port_out.out += share;
  port_in.in += share;
}

void Traffic::reduce(Rank rank, double share) { reduced_[static_cast<std::size_t>(rank)] += share; }

void Traffic::end_step(int repeat) {
  StepLoad step;
  step.repeat = repeat;
  const auto busiest = [](ClassLoad& load, std::vector<Port>& ports) {
    for (Port& port : ports) {
      load.messages = std::max({load.messages, port.messages_out, port.messages_in});
      load.bytes = std::max({load.bytes, port.out, port.in});
      port = {};
    }
  };
  busiest(step.inside, inside_);
  busiest(step.between, between_);
  busiest(step.between, node_link_);
  for (double& reduced : reduced_) step.reduced = std::max(step.reduced, std::exchange(reduced, 0));
  load_.push_back(step);
}

void count_traffic(const Schedule& schedule, TrafficSink& sink) {
  int steps = 0;
  for (const Program& program : schedule.programs) steps = std::max(steps, program.steps());
  for (int step = 0; step < steps; ++step) {
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
      const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
      if (step >= program.steps()) continue;
      const Chunking& chunking = program.chunking();
      const auto total = static_cast<double>(chunking.total_weight());
      std::map<Rank, double> to_peer;  // all transfers to one peer are one message
      for (const Send& send : program.sends(step)) {
        to_peer[send.peer] += static_cast<double>(chunking.weight(send.range)) / total;
      }
      for (const auto& [peer, share] : to_peer) sink.message(rank, peer, share);
      for (const auto& writes : {program.receives(step), program.locals(step)}) {
        for (const Write& write : writes) {
          const auto share = static_cast<double>(chunking.weight(write.range)) / total;
          sink.reduce(rank, share * (write.source_count - 1));
        }
      }
    }
    sink.end_step(1);
  }
}

}  // namespace schedule

Load count_load(const Schedule& schedule, const Topology& topology) {
  schedule::Traffic traffic{topology};
  schedule::count_traffic(schedule, traffic);
  return traffic.take();
}

bool TrafficSink::begin_pipeline(int) { return false; }

double predict_seconds(const Load& load, double bytes, const CostConstants& constants) {
  const auto class_seconds = [&](const ClassLoad& class_load, const Link& link) {
    const double latency_s = link.latency_s * class_load.messages;
    const double transfer_s = bytes * class_load.bytes / link.bandwidth_bytes_per_s;
    return latency_s + transfer_s - link.overlap * std::min(latency_s, transfer_s);
  };
  double seconds = 0;
  double reduced = 0;
  for (const StepLoad& step : load) {
    seconds += step.repeat * std::max(class_seconds(step.inside, constants.inside),
                                      class_seconds(step.between, constants.between));
    reduced += step.repeat * step.reduced;
  }
  return seconds + bytes * reduced * constants.reduce_s_per_byte;
}

Fraction sent_share(const Program& program) {
  std::int64_t sent = 0;
  for (int step = 0; step < program.steps(); ++step) {
    for (const Send& send : program.sends(step)) sent += program.chunking().weight(send.range);
  }
  return {sent, program.chunking().total_weight()};
}

CostConstants CostConstants::for_algorithm(std::string_view name) const {
  CostConstants constants{inside, between, reduce_s_per_byte, {}, network};
  const bool tree = !name.starts_with("file:") && name.find("tree") != std::string_view::npos;
  if (tree && network.tree_latency_s > 0) constants.between.latency_s = network.tree_latency_s;
  if (const MeasuredLink* const link = measured_for(name)) {
    constants.inside = link->inside;
    constants.between = link->between.value_or(between);
    constants.reduce_s_per_byte = 0;
    constants.inside.gap_s = constants.inside.latency_s;
    if (link->between) constants.between.gap_s = constants.between.latency_s;
  }
  return constants;
}

const MeasuredLink* CostConstants::measured_for(std::string_view name) const {
  const auto found = std::find_if(measured.begin(), measured.end(),
                                  [&](const MeasuredLink& link) { return link.algorithm == name; });
  return found == measured.end() ? nullptr : &*found;
}

}  // namespace sluice
