#include "engine/select/constants.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/format.h"
#include "bootstrap/host.h"
#include "cluster/cluster.h"
#include "sluice/algorithms.h"
#include "transport/control.h"

namespace sluice::engine {
namespace {

constexpr std::string_view kMeasured[] = {"exchange",           "direct",           "ring",
                                          "recursive_doubling", "halving_doubling", "double_tree"};
constexpr std::size_t kSmallBytes = 8;
constexpr std::size_t kLargeBytes = std::size_t{1} << 20;
constexpr double kNoDifference = 1e15;  // bytes a second: the large one was not slower

// A measured algorithm at one size: the best of some times of about half a millisecond, by this
// rank's clock. What disturbs a time can only make it longer.
struct Timing {
  CollectiveOptions options;
  std::size_t bytes;
  double seconds = 1;

  void measure(Communicator& communicator, const Pool& pool, bool worth_it) {
    constexpr double kSlice = 5e-4;
    constexpr double kMostRepeats = 200;
    double repeats = worth_it ? std::clamp(kSlice / seconds, 1.0, kMostRepeats) : 0;
    communicator.broadcast(&repeats, 1, {.type = DataType::F64}).wait();  // rank 0's, for all
    if (repeats == 0) return;
    seconds =
        std::min(seconds, seconds_of(communicator, pool.as<float>().data(), bytes / sizeof(float),
                                     options, static_cast<int>(repeats)));
  }
};

// `exchange` goes through slots, which only hold so much.
std::int64_t most_bytes(std::string_view algorithm) {
  return algorithm == "exchange" ? static_cast<std::int64_t>(transport::kSlotBytes)
                                 : std::numeric_limits<std::int64_t>::max();
}

// alpha and beta such that the algorithm's closed form gives the two times.
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
  const double seconds = large_s - small_s;
  const Link link{
      .latency_s = messages > 0 ? small_s / messages : 0,
      .bandwidth_bytes_per_s = seconds > grown / kNoDifference ? grown / seconds : kNoDifference};
  return {.algorithm = std::string{algorithm.name},
          .inside = link,
          .most_bytes = most_bytes(algorithm.name)};
}

}  // namespace

std::span<const std::string_view> measured_algorithms() { return kMeasured; }

std::filesystem::path constants_path(const bootstrap::Environment& environment, int ranks) {
  std::filesystem::path folder;
  if (const auto own = environment.text(bootstrap::variable::kCache)) {
    folder = *own;
  } else if (const auto cache = environment.text(bootstrap::variable::kCacheHome)) {
    folder = std::filesystem::path{*cache} / "sluice";
  } else if (const auto home = environment.text(bootstrap::variable::kHome)) {
    folder = std::filesystem::path{*home} / ".cache" / "sluice";
  } else {
    return {};
  }
  // Homes are shared between machines. All cores count, not only those this rank is pinned to.
  return folder / base::format("{}-{}-cores-{}-ranks.toml", bootstrap::host_name(),
                               sysconf(_SC_NPROCESSORS_CONF), ranks);
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

void save_constants(const std::filesystem::path& path, const CostConstants& constants, int ranks) {
  if (path.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  const cluster::Cluster cluster{"this-machine", ranks, constants};
  // Never half a file for another job to read.
  const std::filesystem::path written = path.string() + base::format(".{}", getpid());
  std::ofstream file{written};
  file << "# Measured by Sluice; delete it to have it measured again.\n"
       << cluster::show_cluster(cluster);
  file.close();
  if (file) {
    std::filesystem::rename(written, path, failed);
  } else {
    std::filesystem::remove(written, failed);
  }
}

CostConstants typical_constants() {
  return cluster::find_cluster("shared-memory").value().constants;
}

CostConstants measure_constants(Communicator& communicator) {
  const Pool pool = communicator.allocate(kLargeBytes);
  std::vector<Timing> timings;  // small and large of each
  for (const std::string_view name : kMeasured) {
    const CollectiveOptions options{.algorithm = std::string{name}};
    timings.push_back({options, kSmallBytes});
    timings.push_back({options, name == "exchange" ? transport::kSlotBytes : kLargeBytes});
  }
  // Round after round, so that a disturbance does not hit one algorithm alone. The first two prove,
  // map and touch; then who is far behind is left alone, and all are when it takes too long.
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
      const bool hopeful =
          timing.seconds < kFarBehind * best && transport::Clock::now() - begin < kLong;
      timing.measure(communicator, pool, round < 2 || hopeful);
    }
  }
  CostConstants constants = typical_constants();
  constants.measured.clear();
  for (std::size_t i = 0; i < std::size(kMeasured); ++i) {
    const Timing& small = timings[2 * i];
    const Timing& large = timings[2 * i + 1];
    constants.measured.push_back(fitted(*find_algorithm(kMeasured[i]).value(), communicator.size(),
                                        small.seconds, large.seconds, large.bytes));
  }
  return constants;
}

bool plausible(const CostConstants& constants) {
  return std::all_of(
      constants.measured.begin(), constants.measured.end(),
      [](const MeasuredLink& link) { return link.inside.bandwidth_bytes_per_s < kNoDifference; });
}

CostConstants hand_out(Communicator& communicator, const CostConstants& constants) {
  std::array<double, 2 * std::size(kMeasured)> numbers{};
  for (std::size_t i = 0; i < std::size(kMeasured) && communicator.rank() == 0; ++i) {
    const Link& link = constants.measured_for(kMeasured[i])->inside;
    numbers[2 * i] = link.latency_s;
    numbers[2 * i + 1] = link.bandwidth_bytes_per_s;
  }
  communicator.broadcast(numbers.data(), numbers.size(), {.type = DataType::F64}).wait();
  CostConstants handed = typical_constants();
  handed.measured.clear();
  for (std::size_t i = 0; i < std::size(kMeasured); ++i) {
    handed.measured.push_back(
        {.algorithm = std::string{kMeasured[i]},
         .inside = {.latency_s = numbers[2 * i], .bandwidth_bytes_per_s = numbers[2 * i + 1]},
         .most_bytes = most_bytes(kMeasured[i])});
  }
  return handed;
}

}  // namespace sluice::engine
