#include "bench/network/measurement.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "bench/network/stolen_time.h"
#include "bench/program.h"
#include "cli/bench/bench_allreduce.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

constexpr double kSliceSeconds = 0.1;
constexpr double kLargeMoved = 20e6;
constexpr double kMostCredit = 0.01;  // of a large buffer
constexpr std::uint64_t kMostWarmUp = 4 << 20;
constexpr double kMemoryBytesPerS = 1e9;  // a first guess, for hosts without links
constexpr int kTrialRounds = 2;           // after which slow settings are skipped
constexpr double kClearlySlower = 1.3;
constexpr double kDisturbed = 0.02;  // stolen fraction of processor time
constexpr int kMostAttempts = 4;     // per slice

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

}  // namespace

Measurement::Measurement(const std::vector<ContenderSetting>& settings, const ClusterSetup& setup,
                         const StopSignals& signals, std::function<void(const std::string&)> report)
    : box_{setup.box}, cluster_{setup.cluster}, report_{std::move(report)} {
  for (const ContenderSetting& setting : settings) {
    ContenderState& contender = contenders_.emplace_back();
    contender.setting = setting;
    try {
      contender.team = std::make_unique<Team>(setting.team, signals);
    } catch (const Error& error) {
      lose(contender, error.what());
    }
  }
}

void Measurement::lose(ContenderState& contender, const std::string& why) {
  contender.team.reset();
  well_ = false;
  report_(why);
}

double Measurement::effort(std::uint64_t bytes) const {
  return static_cast<double>(contenders_.size()) *
         std::max({2 * kSliceSeconds, 3 * cluster_.least_s(static_cast<double>(bytes)),
                   3 * static_cast<double>(bytes) / kMemoryBytesPerS});
}

double Measurement::buffer_bytes(const ContenderState& contender, std::uint64_t bytes) const {
  return static_cast<double>(bytes / sizeof(float) * size_of(contender.setting.type));
}

SliceRequest Measurement::slice_for(const ContenderState& contender, std::uint64_t bytes) const {
  const DataType type = contender.setting.type;
  const double buffer = buffer_bytes(contender, bytes);
  const double moved = cluster_.moved_bytes(buffer);
  const int most = cli::BenchPattern{type, ReduceOp::Sum, cluster_.ranks()}.most_operations();
  const auto credit = static_cast<double>(box::burst_bytes(cluster_.mbit_per_s));
  const bool large = moved >= kLargeMoved;
  const double guess_s =
      std::max({contender.guess_s, cluster_.least_s(buffer), buffer / kMemoryBytesPerS});
  SliceRequest slice{
      .bytes = static_cast<std::uint64_t>(buffer), .most_warm_up_bytes = kMostWarmUp, .type = type};
  if (!large || credit > kMostCredit * moved)
    slice.lead_in =
        static_cast<int>(std::clamp<double>(std::ceil(2 * credit / moved), 1, most / 4.0));
  const double wanted = kSliceSeconds / guess_s;
  const int least = moved < 5 * kLargeMoved ? 2 : 1;
  slice.operations =
      static_cast<int>(std::clamp<double>(wanted, least, std::max(least, most - slice.lead_in)));
  slice.batches = static_cast<int>(
      std::clamp<double>(wanted / (slice.operations + slice.lead_in), 1, kMostBatches));
  return slice;
}

void Measurement::run_slice(ContenderState& contender, std::uint64_t bytes, bool measured) {
  if (!contender.team || contender.skipped) return;
  const SliceRequest slice = slice_for(contender, bytes);
  int runs = 0;
  std::vector<box::LinkCounters> before;
  for (int host = 0; host < cluster_.hosts; ++host) before.push_back(box_.counters(host));
  try {
    SliceResult result;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const StolenTime stolen;
      result = contender.team->run(slice);
      ++runs;
      if (stolen.share() < kDisturbed) break;
      ++(attempt + 1 < kMostAttempts ? repeated_ : disturbed_);
    }
    contender.guess_s = result.operation_s;
    if (!measured) return;
    contender.slices_s.push_back(result.operation_s);
    contender.cpu_s.push_back(result.cpu_s);
    for (int host = 0; host < cluster_.hosts; ++host) {
      const auto i = static_cast<std::size_t>(host);
      contender.wire_bytes[i] += box_.counters(host).payload_sent_since(before[i]);
    }
    contender.closed_form_bytes +=
        cluster_.host_bytes(static_cast<double>(slice.bytes)) * operations_of(slice) * runs;
  } catch (const Error& error) {
    lose(contender,
         base::format("{}, {}", base::format_bytes(static_cast<double>(bytes)), error.what()));
  }
}

void Measurement::skip_slow_settings() {
  for (const ContenderState& best : contenders_) {
    for (ContenderState& contender : contenders_) {
      if (best.setting.contender != contender.setting.contender || best.slices_s.empty() ||
          contender.slices_s.empty())
        continue;
      if (least(contender.slices_s) > kClearlySlower * least(best.slices_s))
        contender.skipped = true;
    }
  }
}

NetworkRow Measurement::run(std::uint64_t bytes, int rounds, Progress& progress) {
  for (ContenderState& contender : contenders_) {
    contender.skipped = false;
    contender.slices_s.clear();
    contender.cpu_s.clear();
    contender.wire_bytes.assign(static_cast<std::size_t>(cluster_.hosts), 0);
    contender.closed_form_bytes = 0;
  }
  if (!started_) {
    for (ContenderState& contender : contenders_) run_slice(contender, bytes, false);
  }
  started_ = true;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % contenders_.size();
      run_slice(contenders_[turn], bytes, true);
      progress.advance(effort(bytes) / rounds / static_cast<double>(contenders_.size()));
    }
    if (round + 1 == kTrialRounds) skip_slow_settings();
  }
  return row_of(bytes);
}

std::string Measurement::disturbances() const {
  if (repeated_ == 0 && disturbed_ == 0) return "";
  return base::format(
      "repeated a slice {} times because more than {:.0f}% of the processor time was stolen; kept "
      "{} "
      "such slices after {} attempts",
      repeated_, 100 * kDisturbed, disturbed_, kMostAttempts);
}

NetworkRow Measurement::row_of(std::uint64_t bytes) const {
  NetworkRow row{.bytes = bytes};
  for (const ContenderState& contender : contenders_) {
    if (!contender.team || contender.slices_s.empty()) continue;
    const ContenderSetting& setting = contender.setting;
    if (row.find(setting.contender) == nullptr)
      row.entries.push_back({.contender = setting.contender, .role = setting.role});
    Entry& entry = *std::find_if(row.entries.begin(), row.entries.end(), [&](const Entry& each) {
      return each.contender == setting.contender;
    });
    const double seconds = median(contender.slices_s);
    entry.settings_s[setting.setting] = seconds;
    if (entry.seconds > 0 && entry.seconds <= seconds) continue;
    entry.type = setting.type;
    entry.bytes = buffer_bytes(contender, bytes);
    entry.setting = setting.setting;
    entry.seconds = seconds;
    entry.cpu_s = median(contender.cpu_s);
    if (contender.closed_form_bytes == 0) continue;  // a single host sends nothing
    entry.wire_ratio = *std::max_element(contender.wire_bytes.begin(), contender.wire_bytes.end()) /
                       contender.closed_form_bytes;
  }
  return row;
}

}  // namespace sluice::bench
