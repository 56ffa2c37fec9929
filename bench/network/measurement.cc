#include "bench/network/measurement.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "bench/allreduce/median.h"
#include "bench/network/stolen_time.h"
#include "cli/bench/bench_allreduce.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

constexpr double kSliceSeconds = 0.1;
constexpr double kCreditBytes = 192 * 1024;         // a link's bucket, as the box makes it
constexpr double kLargeMoved = 100 * kCreditBytes;  // credit is a hundredth of it at most
constexpr std::uint64_t kMostWarmUp = 4 << 20;
constexpr double kMemoryBytesPerS = 1e9;  // a first guess, where links do not tell
constexpr int kTrialRounds = 2;           // after which slow settings rest
constexpr double kClearlySlower = 1.3;
constexpr double kDisturbed = 0.02;  // of the cores, had by others
constexpr int kMostAttempts = 4;     // at a slice

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

}  // namespace

Measurement::Measurement(const std::vector<Entrant>& entrants, const Venue& venue,
                         const StopSignals& signals, std::function<void(const std::string&)> tell)
    : box_{venue.box}, cluster_{venue.cluster}, tell_{std::move(tell)} {
  for (const Entrant& entrant : entrants) {
    Contestant& contestant = contestants_.emplace_back();
    contestant.entrant = entrant;
    try {
      contestant.team = std::make_unique<Team>(entrant.team, signals);
    } catch (const Error& error) {
      lose(contestant, error.what());
    }
  }
}

void Measurement::lose(Contestant& contestant, const std::string& why) {
  contestant.team.reset();
  well_ = false;
  tell_(why);
}

double Measurement::effort(std::uint64_t bytes) const {
  return static_cast<double>(contestants_.size()) *
         std::max(2 * kSliceSeconds, 3 * cluster_.least_s(static_cast<double>(bytes)));
}

double Measurement::buffer_bytes(const Contestant& contestant, std::uint64_t bytes) const {
  return static_cast<double>(bytes / sizeof(float) * size_of(contestant.entrant.type));
}

SliceOrder Measurement::order_for(const Contestant& contestant, std::uint64_t bytes) const {
  const DataType type = contestant.entrant.type;
  const double buffer = buffer_bytes(contestant, bytes);
  const double moved = cluster_.moved_bytes(buffer);
  const int most = cli::BenchPattern{type, ReduceOp::Sum, cluster_.ranks()}.most_operations();
  const bool large = moved >= kLargeMoved;
  const double guess_s =
      std::max({contestant.guess_s, cluster_.least_s(buffer), buffer / kMemoryBytesPerS});
  SliceOrder order{
      .bytes = static_cast<std::uint64_t>(buffer), .most_warm_up_bytes = kMostWarmUp, .type = type};
  if (!large)
    order.lead_in =
        static_cast<int>(std::clamp<double>(std::ceil(2 * kCreditBytes / moved), 1, most / 4.0));
  const double wanted = kSliceSeconds / guess_s;
  const int least = moved < 5 * kLargeMoved ? 2 : 1;
  order.operations =
      static_cast<int>(std::clamp<double>(wanted, least, std::max(least, most - order.lead_in)));
  order.batches = static_cast<int>(
      std::clamp<double>(wanted / (order.operations + order.lead_in), 1, kMostBatches));
  return order;
}

void Measurement::run_slice(Contestant& contestant, std::uint64_t bytes, bool measured) {
  if (!contestant.team || contestant.rests) return;
  const SliceOrder order = order_for(contestant, bytes);
  int runs = 0;
  std::vector<box::LinkCounters> before;
  for (int host = 0; host < cluster_.hosts; ++host) before.push_back(box_.counters(host));
  try {
    SliceResult result;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const StolenTime stolen;
      result = contestant.team->run(order);
      ++runs;
      if (stolen.share() < kDisturbed) break;
      ++(attempt + 1 < kMostAttempts ? repeated_ : disturbed_);
    }
    contestant.guess_s = result.operation_s;
    if (!measured) return;
    contestant.slices_s.push_back(result.operation_s);
    contestant.cpu_s.push_back(result.cpu_s);
    for (int host = 0; host < cluster_.hosts; ++host) {
      const auto i = static_cast<std::size_t>(host);
      contestant.wire_bytes[i] += box_.counters(host).payload_sent_since(before[i]);
    }
    contestant.closed_form_bytes +=
        cluster_.host_bytes(static_cast<double>(order.bytes)) * operations_of(order) * runs;
  } catch (const Error& error) {
    lose(contestant,
         base::format("{}, {}", base::format_bytes(static_cast<double>(bytes)), error.what()));
  }
}

void Measurement::rest_the_slow() {
  for (const Contestant& best : contestants_) {
    for (Contestant& contestant : contestants_) {
      if (best.entrant.contender != contestant.entrant.contender || best.slices_s.empty() ||
          contestant.slices_s.empty())
        continue;
      if (least(contestant.slices_s) > kClearlySlower * least(best.slices_s))
        contestant.rests = true;
    }
  }
}

NetworkRow Measurement::run(std::uint64_t bytes, int rounds, Progress& progress) {
  for (Contestant& contestant : contestants_) {
    contestant.rests = false;
    contestant.slices_s.clear();
    contestant.cpu_s.clear();
    contestant.wire_bytes.assign(static_cast<std::size_t>(cluster_.hosts), 0);
    contestant.closed_form_bytes = 0;
  }
  if (!started_) {
    for (Contestant& contestant : contestants_) run_slice(contestant, bytes, false);
  }
  started_ = true;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % contestants_.size();
      run_slice(contestants_[turn], bytes, true);
      progress.advance(effort(bytes) / rounds / static_cast<double>(contestants_.size()));
    }
    if (round + 1 == kTrialRounds) rest_the_slow();
  }
  return row_of(bytes);
}

std::string Measurement::disturbances() const {
  if (repeated_ == 0 && disturbed_ == 0) return "";
  return base::format(
      "{} times a slice was run again because others had more than {:.0f}% of the cores; {} slices "
      "were kept so after {} attempts",
      repeated_, 100 * kDisturbed, disturbed_, kMostAttempts);
}

NetworkRow Measurement::row_of(std::uint64_t bytes) const {
  NetworkRow row{.bytes = bytes};
  for (const Contestant& contestant : contestants_) {
    if (!contestant.team || contestant.slices_s.empty()) continue;
    const Entrant& entrant = contestant.entrant;
    if (row.find(entrant.contender) == nullptr)
      row.entries.push_back({.contender = entrant.contender, .role = entrant.role});
    Entry& entry = *std::find_if(row.entries.begin(), row.entries.end(), [&](const Entry& each) {
      return each.contender == entrant.contender;
    });
    const double seconds = median(contestant.slices_s);
    entry.settings_s[entrant.setting] = seconds;
    if (entry.seconds > 0 && entry.seconds <= seconds) continue;
    entry.type = entrant.type;
    entry.bytes = buffer_bytes(contestant, bytes);
    entry.setting = entrant.setting;
    entry.seconds = seconds;
    entry.cpu_s = median(contestant.cpu_s);
    if (contestant.closed_form_bytes == 0) continue;  // one host: nothing has to leave it
    entry.wire_ratio =
        *std::max_element(contestant.wire_bytes.begin(), contestant.wire_bytes.end()) /
        contestant.closed_form_bytes;
  }
  return row;
}

}  // namespace sluice::bench
