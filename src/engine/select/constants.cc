#include "engine/select/constants.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "bootstrap/host.h"
#include "cluster/cluster.h"
#include "engine/communicator_state.h"
#include "sluice/algorithms.h"
#include "transport/control.h"

namespace sluice::engine {
namespace {

constexpr std::string_view kMeasured[] = {"exchange",           "direct",           "ring",
                                          "recursive_doubling", "halving_doubling", "double_tree"};
constexpr std::size_t kSmallBytes = 8;
constexpr std::size_t kLargeBytes = std::size_t{1} << 20;
constexpr double kNoDifference = 1e15;  // bytes a second, when the large size was not slower

// A measured algorithm at one size: the shortest of several measurements of about half a
// millisecond, by this rank's clock. A disturbance can only make a measurement longer.
struct Timing {
  CollectiveOptions options;
  std::size_t bytes;
  double seconds = 1;

  void measure(Communicator& communicator, const Pool& pool, bool worth_it) {
    constexpr double kSlice = 5e-4;
    constexpr double kMostRepeats = 200;
    double repeats = worth_it ? std::clamp(kSlice / seconds, 1.0, kMostRepeats) : 0;
    communicator.broadcast(std::span{&repeats, 1}).wait();  // all ranks use rank 0's
    if (repeats == 0) return;
    seconds =
        std::min(seconds, seconds_of(communicator, pool.as<float>().first(bytes / sizeof(float)),
                                     options, static_cast<int>(repeats)));
  }
};

// `exchange` sends its data through slots of a fixed size.
std::int64_t most_bytes(std::string_view algorithm) {
  return algorithm == "exchange" ? static_cast<std::int64_t>(transport::kSlotBytes)
                                 : std::numeric_limits<std::int64_t>::max();
}

// The alpha and beta for which the algorithm's closed form gives the two times.
MeasuredLink fitted(const Algorithm& algorithm, int ranks, double small_s, double large_s,
                    std::size_t large_bytes) {
  const Shape shape =
      complete_shape(algorithm, {.collective = Collective::AllReduce, .ranks = ranks}).value();
  double messages = 0;
  double share = 0;
  for (const StepLoad& step : load_of(algorithm, shape, Topology{{ranks}})) {
    messages += step.repeat * step.inside.messages;
    share += step.repeat * step.inside.bytes;
  }
  const double grown = static_cast<double>(large_bytes - kSmallBytes) * share;
  // A disturbed short measurement can take longer than the long one. Then only the long one counts.
  // The few bytes of `exchange` may make no difference indeed.
  double seconds = large_s - small_s;
  if (seconds <= 0 && large_bytes == kLargeBytes) seconds = large_s;
  const Link link{
      .latency_s = messages > 0 ? std::min(small_s, large_s) / messages : 0,
      .bandwidth_bytes_per_s = seconds > grown / kNoDifference ? grown / seconds : kNoDifference};
  return {.algorithm = std::string{algorithm.name},
          .inside = link,
          .most_bytes = most_bytes(algorithm.name)};
}

struct Measured {
  CostConstants constants;
  bool plausible = true;  // else the machine was too busy, and they are not worth keeping
};

// Times every measured algorithm for some milliseconds. Every rank must call it; each returns its
// own figures.
Measured measure_constants(Communicator& communicator) {
  const Pool pool = communicator.allocate(kLargeBytes);
  std::vector<Timing> timings;  // of each algorithm a small and a large size
  for (const std::string_view name : kMeasured) {
    const CollectiveOptions options{.algorithm = std::string{name}};
    timings.push_back({options, kSmallBytes});
    timings.push_back({options, name == "exchange" ? transport::kSlotBytes : kLargeBytes});
  }
  // All algorithms are timed in each round, so that a disturbance hits all of them. The first two
  // rounds prove schedules and touch memory. Later rounds skip algorithms that are far behind, and
  // all of them when the measurement takes too long.
  constexpr int kRounds = 8;
  constexpr double kFarBehind = 4;
  constexpr std::chrono::milliseconds kLong{300};
  const auto begin = transport::Clock::now();
  for (int round = 0; round < kRounds; ++round) {
    for (Timing& timing : timings) {
      double best = timing.seconds;
      for (const Timing& other : timings) {
        if (other.bytes == timing.bytes) best = std::min(best, other.seconds);
      }
      const bool may_be_best =
          timing.seconds < kFarBehind * best && transport::Clock::now() - begin < kLong;
      timing.measure(communicator, pool, round < 2 || may_be_best);
    }
  }
  Measured result{.constants = typical_constants()};
  result.constants.measured.clear();
  double best_s = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < std::size(kMeasured); ++i) {
    const Timing& small = timings[2 * i];
    const Timing& large = timings[2 * i + 1];
    result.constants.measured.push_back(fitted(*find_algorithm(kMeasured[i]).value(),
                                               communicator.size(), small.seconds, large.seconds,
                                               large.bytes));
    if (large.bytes != kLargeBytes || large.seconds >= best_s) continue;
    best_s = large.seconds;
    result.plausible = small.seconds < large.seconds;
  }
  return result;
}

// Rank 0's constants, at every rank.
CostConstants broadcast_constants(Communicator& communicator, const CostConstants& constants) {
  std::array<double, 2 * std::size(kMeasured)> numbers{};
  for (std::size_t i = 0; i < std::size(kMeasured) && communicator.rank() == 0; ++i) {
    const Link& link = constants.measured_for(kMeasured[i])->inside;
    numbers[2 * i] = link.latency_s;
    numbers[2 * i + 1] = link.bandwidth_bytes_per_s;
  }
  communicator.broadcast(numbers).wait();
  CostConstants received = typical_constants();
  received.measured.clear();
  for (std::size_t i = 0; i < std::size(kMeasured); ++i) {
    received.measured.push_back(
        {.algorithm = std::string{kMeasured[i]},
         .inside = {.latency_s = numbers[2 * i], .bandwidth_bytes_per_s = numbers[2 * i + 1]},
         .most_bytes = most_bytes(kMeasured[i])});
  }
  return received;
}

int cores_of_machine() {
  // All cores count, not only those that this rank is pinned to.
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)));
}

// Some ranks of a node, far apart, because neighbours may be pinned to one core. Rank 0 is one.
std::vector<Rank> few_of(int ranks) {
  const int few = std::min(ranks, kMostMeasuredRanks);
  std::vector<Rank> members;
  for (Rank i = 0; i < few; ++i)
    members.push_back(static_cast<Rank>(std::int64_t{i} * ranks / few));
  return members;
}

// A communicator of these ranks. Only they call it; `block` is their control block, at rank 0.
Communicator communicator_of(const Communicator& communicator, const std::vector<Rank>& members,
                             const transport::MemoryBlock& block) {
  const CommunicatorState& state = *communicator.state();
  const transport::Group& whole = state.group();
  std::byte* const control =
      block.data != nullptr ? block.data : whole.address(0, {block.id, 0}).value();
  auto group = std::make_unique<transport::Group>(whole, members, control, nullptr);
  Choices choices{state.choices().order().part(members), group->rank(), typical_constants(), {}};
  Communicator few = communicator_with(
      std::make_shared<CommunicatorState>(std::move(group), state.context(), std::move(choices)));
  few.set_deadline(state.deadline());
  return few;
}

// The constants of rank 0's file. Without the file a few ranks measure them now, while the others
// wait for the result.
CostConstants agree_on_one_node(Communicator& communicator, const transport::Group& group,
                                const bootstrap::Environment& environment) {
  const int ranks = communicator.size();
  const std::filesystem::path file = constants_path(environment, ranks);
  const std::vector<Rank> members = few_of(ranks);
  std::optional<CostConstants> constants;
  transport::MemoryBlock block;  // the members' control block; never released, as in split()
  if (communicator.rank() == 0) {
    constants = load_constants(file);
    if (!constants)
      block = group.memory()
                  .allocate(transport::ControlBlock::bytes(static_cast<int>(members.size())))
                  .value();
  }
  auto id = static_cast<std::int64_t>(block.id);  // 0: the constants are known
  communicator.broadcast(std::span{&id, 1}).wait();
  block.id = static_cast<std::uint64_t>(id);
  if (id != 0 && std::find(members.begin(), members.end(), communicator.rank()) != members.end()) {
    Communicator few = communicator_of(communicator, members, block);
    Measured measured = measure_constants(few);
    if (communicator.rank() == 0 && measured.plausible)
      save_constants(file, measured.constants, few.size());
    constants = std::move(measured.constants);
  }
  if (constants) constants = extrapolated(std::move(*constants), ranks, cores_of_machine());
  return broadcast_constants(communicator, constants.value_or(CostConstants{}));
}

// The switch of every node, from the cluster file. Hosts that it does not name share a switch.
std::vector<std::int32_t> switches_of(const transport::Group& group,
                                      const std::optional<cluster::Cluster>& cluster) {
  std::vector<std::int32_t> switches;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    const transport::RankLocation& location = group.location(rank);
    if (static_cast<std::size_t>(location.node) < switches.size()) continue;
    switches.push_back(cluster ? cluster->switch_of(location.host, location.address) : 0);
  }
  return switches;
}

// The constants of rank 0's cluster file, at every rank.
CostConstants broadcast_cluster(Communicator& communicator,
                                const std::optional<cluster::Cluster>& cluster) {
  std::string text = cluster ? cluster::show_cluster(*cluster) : "";
  auto bytes = static_cast<std::int64_t>(text.size());
  communicator.broadcast(std::span{&bytes, 1}).wait();
  text.resize(static_cast<std::size_t>(bytes));
  communicator.broadcast({text.data(), text.size(), DataType::U8}).wait();
  return cluster::parse_cluster(text, "rank 0's cluster file").value().constants;
}

Choices agree_between_nodes(Communicator& communicator, const transport::Group& group,
                            const bootstrap::Environment& environment,
                            std::vector<AlgorithmOverride> overrides) {
  std::optional<cluster::Cluster> cluster;
  const auto file = environment.text(bootstrap::variable::kTopology);
  if (communicator.rank() == 0 && file) cluster = cluster::find_cluster(*file).value();
  std::vector<std::int32_t> switches = switches_of(group, cluster);
  communicator.broadcast(switches).wait();
  RankOrder order{group, switches};

  std::int32_t given = cluster ? 1 : 0;
  communicator.broadcast(std::span{&given, 1}).wait();
  const CostConstants constants =
      given != 0 ? broadcast_cluster(communicator, cluster)
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

std::span<const std::string_view> measured_algorithms() { return kMeasured; }

std::filesystem::path cache_folder(const bootstrap::Environment& environment) {
  if (const auto own = environment.text(bootstrap::variable::kCache)) return *own;
  if (const auto cache = environment.text(bootstrap::variable::kCacheHome))
    return std::filesystem::path{*cache} / "sluice";
  if (const auto home = environment.text(bootstrap::variable::kHome))
    return std::filesystem::path{*home} / ".cache" / "sluice";
  return {};
}

std::filesystem::path constants_path(const bootstrap::Environment& environment, int ranks) {
  const std::filesystem::path folder = cache_folder(environment);
  if (folder.empty()) return {};
  // The name has the host, because machines may share a home.
  return folder / base::format("{}-{}-cores-{}-ranks.toml", bootstrap::host_name(),
                               cores_of_machine(), std::min(ranks, kMostMeasuredRanks));
}

std::optional<CostConstants> load_constants(const std::filesystem::path& path) {
  std::ifstream file{path};
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const Result<cluster::Cluster> cluster = cluster::parse_cluster(text, path.string());
  if (!cluster.ok()) return std::nullopt;
  const CostConstants& constants = cluster.value().constants;
  const bool complete =
      std::all_of(std::begin(kMeasured), std::end(kMeasured),
                  [&](std::string_view name) { return constants.measured_for(name) != nullptr; });
  return complete ? std::optional{constants} : std::nullopt;
}

std::optional<CostConstants> kept_constants(const bootstrap::Environment& environment, int ranks) {
  std::optional<CostConstants> constants = load_constants(constants_path(environment, ranks));
  if (constants) constants = extrapolated(std::move(*constants), ranks, cores_of_machine());
  return constants;
}

CostConstants extrapolated(CostConstants measured, int ranks, int cores) {
  const auto turns = [&](int present) { return std::max(1.0, 1.0 * present / cores); };
  const double slower = turns(ranks) / turns(std::min(ranks, kMostMeasuredRanks));
  for (MeasuredLink& link : measured.measured) {
    link.inside.latency_s *= slower;
    link.inside.bandwidth_bytes_per_s /= slower;
  }
  return measured;
}

void save_constants(const std::filesystem::path& path, const CostConstants& constants, int ranks) {
  if (path.empty()) return;
  const cluster::Cluster cluster{"this-machine", ranks, constants};
  base::try_replace_file(path, "# Measured by Sluice; delete it to have it measured again.\n" +
                                   cluster::show_cluster(cluster));
}

CostConstants typical_constants() {
  return cluster::find_cluster("shared-memory").value().constants;
}

Choices agreed_choices(Communicator& communicator, const transport::Group& group,
                       const bootstrap::Environment& environment) {
  std::vector<AlgorithmOverride> overrides = overrides_from(environment).value();
  if (group.network() != nullptr)
    return agree_between_nodes(communicator, group, environment, std::move(overrides));
  return {RankOrder{group}, group.rank(), agree_on_one_node(communicator, group, environment),
          std::move(overrides)};
}

}  // namespace sluice::engine
