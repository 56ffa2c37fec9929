#include "engine/network_constants.h"

#include <algorithm>
#include <vector>

#include "engine/constants.h"
#include "sluice/select.h"
#include "transport/wait.h"

namespace sluice {
namespace {

constexpr std::size_t kSmallCount = 2;
const CollectiveOptions kNumbers{.type = DataType::F64};

double seconds_of(Communicator& communicator, std::vector<float>& data, std::size_t count,
                  const CollectiveOptions& options, int repeats) {
  communicator.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) communicator.all_reduce(data.data(), count, options).wait();
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

// Rank 0's, at every rank.
double told(Communicator& communicator, double value) {
  communicator.broadcast(&value, 1, kNumbers).wait();
  return value;
}

struct Between {
  double messages = 0;
  double share = 0;     // bytes / bytes of the buffer
  double inside_s = 0;  // latency of the steps that stay inside nodes
};

Between between_of(const Algorithm& algorithm, const Topology& topology, const Link& inside,
                   int ranks) {
  const Shape shape =
      shape_on(algorithm, {.collective = Collective::AllReduce, .ranks = ranks}, topology).value();
  Between between;
  for (const StepLoad& step : load_of(algorithm, shape, topology)) {
    between.messages += step.repeat * step.between.messages;
    between.share += step.repeat * step.between.bytes;
    if (step.between.messages == 0)
      between.inside_s += step.repeat * step.inside.messages * inside.latency_s;
  }
  return between;
}

// A ring of growing buffers, until one takes long enough to tell.
double measured_bandwidth(Communicator& communicator, double share) {
  constexpr double kLongEnough = 0.03;
  constexpr std::size_t kMostCount = std::size_t{1} << 23;
  const CollectiveOptions ring{.algorithm = "ring"};
  std::vector<float> data;
  double seconds = 0;
  for (std::size_t count = std::size_t{1} << 15; count <= kMostCount; count *= 4) {
    data.resize(count);
    // The first of a size finds caches, buffers and token buckets as they are after a pause.
    (void)seconds_of(communicator, data, count, ring, 1);
    seconds = told(communicator, seconds_of(communicator, data, count, ring, 1));
    if (seconds > kLongEnough) break;
  }
  return share * static_cast<double>(data.size() * sizeof(float)) / seconds;
}

}  // namespace

CostConstants measure_network(Communicator& communicator, const Topology& topology) {
  constexpr int kRounds = 4;
  constexpr int kRepeats = 4;
  CostConstants constants = typical_constants();
  constants.measured.clear();
  const auto share_of = [&](std::string_view name) {
    return between_of(*find_algorithm(name).value(), topology, constants.inside,
                      communicator.size());
  };
  constants.between.bandwidth_bytes_per_s =
      measured_bandwidth(communicator, share_of("ring").share);

  std::vector<const Algorithm*> timed;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.supports(Collective::AllReduce)) timed.push_back(&algorithm);
  }
  std::vector<double> best(timed.size(), 1);
  std::vector<float> data(kSmallCount);
  for (int round = 0; round < kRounds; ++round) {  // the first proves and connects
    for (std::size_t i = 0; i < timed.size(); ++i) {
      const double seconds = seconds_of(communicator, data, kSmallCount,
                                        {.algorithm = std::string{timed[i]->name}}, kRepeats);
      if (round > 0) best[i] = std::min(best[i], seconds);
    }
  }
  communicator.broadcast(best.data(), best.size(), kNumbers).wait();
  constants.between.latency_s = 1;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const Between between = share_of(timed[i]->name);
    if (between.messages == 0) continue;
    Link link = constants.between;
    link.latency_s = std::max(best[i] - between.inside_s, best[i] / 10) / between.messages;
    constants.between.latency_s = std::min(constants.between.latency_s, link.latency_s);
    constants.measured.push_back(
        {.algorithm = std::string{timed[i]->name}, .inside = constants.inside, .between = link});
  }
  return constants;
}

CostConstants hand_out_links(Communicator& communicator, const CostConstants& constants) {
  double numbers[] = {constants.inside.latency_s, constants.inside.bandwidth_bytes_per_s,
                      constants.between.latency_s, constants.between.bandwidth_bytes_per_s,
                      constants.reduce_s_per_byte};
  communicator.broadcast(numbers, std::size(numbers), kNumbers).wait();
  return {.inside = {numbers[0], numbers[1]},
          .between = {numbers[2], numbers[3]},
          .reduce_s_per_byte = numbers[4]};
}

}  // namespace sluice
