#include "bench/allreduce/results.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bench {
namespace {

constexpr SizeRange kRanges[] = {{"to 512 B", 0, 512},
                                 {"1-64 KiB", 1 << 10, 64 << 10},
                                 {"1-256 MiB", 1 << 20, 256 << 20},
                                 {"all sizes", 0, ~std::uint64_t{0}}};

std::optional<double> seconds_of(const Row& row, const std::string& contender) {
  const auto found = row.seconds.find(contender);
  return found == row.seconds.end() ? std::nullopt : std::optional{found->second};
}

// Sluice's fraction of the minimal kernel's rate.
std::optional<double> share_of_minimal(const Row& row, const std::string& kind) {
  const auto ours = seconds_of(row, kind);
  const auto minimal = seconds_of(row, kMinimal);
  return ours && minimal ? std::optional{*minimal / *ours} : std::nullopt;
}

}  // namespace

std::optional<double> Row::best_peer_s() const {
  std::optional<double> best;
  for (const auto& [name, time_s] : seconds) {
    if (name == kPooled || name == kForeign || name == kMinimal || name == kOtherPooled ||
        name == kOtherForeign) {
      continue;
    }
    if (!best || time_s < *best) best = time_s;
  }
  return best;
}

std::optional<double> Row::speedup(const std::string& kind) const {
  const auto ours = seconds_of(*this, kind);
  const auto best = best_peer_s();
  return ours && best ? std::optional{*best / *ours} : std::nullopt;
}

BuildRatio slowest_against(std::span<const Row> rows, const std::string& contender,
                           const std::string& other) {
  BuildRatio result;
  double logs = 0;
  int count = 0;
  for (const Row& row : rows) {
    const auto ours = seconds_of(row, contender);
    const auto theirs = seconds_of(row, other);
    if (!ours || !theirs) continue;
    const double ratio = *ours / *theirs;
    logs += std::log(ratio);
    ++count;
    if (result.row == nullptr || ratio > result.worst) {
      result.worst = ratio;
      result.row = &row;
    }
  }
  if (count > 0) result.mean = std::exp(logs / count);
  return result;
}

void print_header(int ranks, const std::vector<std::string>& contenders) {
  base::print(
      "\nAll-reduce of f32 in place, {} ranks: microseconds per operation, speedup over the best "
      "peer\n",
      ranks);
  std::string line = base::format("{:>10}", "size");
  for (const std::string& name : contenders) line += base::format(" {:>10}", name);
  base::print("{} {:>8} {:>8} {:>9}\n", line, "sluice", "foreign", "% of min.");
}

void print_row(const Row& row, const std::vector<std::string>& contenders) {
  const auto ratio = [](std::optional<double> value, double unit) {
    return value ? base::format("{:.2f}", unit * *value) : "-";
  };
  std::string line = base::format("{:>10}", base::format_bytes(static_cast<double>(row.bytes)));
  for (const std::string& name : contenders) {
    const auto time_s = seconds_of(row, name);
    line += base::format(" {:>10}", time_s ? base::format("{:.2f}", *time_s * 1e6) : "failed");
  }
  base::print("{} {:>8} {:>8} {:>9}\n", line, ratio(row.speedup(kPooled), 1),
              ratio(row.speedup(kForeign), 1), ratio(share_of_minimal(row, kPooled), 100));
  std::fflush(stdout);
}

void print_summary(std::span<const Row> rows) {
  print_ranges(kRanges);
  for (const std::string& kind : {kPooled, kForeign}) {
    const bool pooled = kind == kPooled;
    print_means<Row>(
        pooled ? "sluice, speedup over the best peer" : "foreign, speedup over the best peer", rows,
        kRanges, [&](const Row& row) { return row.speedup(kind); });
    print_means<Row>(
        pooled ? "sluice, % of the minimal kernel" : "foreign, % of the minimal kernel", rows,
        kRanges, [&](const Row& row) { return share_of_minimal(row, kind); }, 100, "%");
  }
}

nlohmann::ordered_json to_json(std::span<const Row> rows, const std::vector<std::string>& peers) {
  const auto or_null = [](std::optional<double> value, double unit) -> nlohmann::ordered_json {
    if (!value) return nullptr;
    return *value * unit;
  };
  auto list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    for (const std::string& kind : {kPooled, kForeign}) {
      auto times = nlohmann::ordered_json::object();
      for (const std::string& peer : peers) times[peer] = or_null(seconds_of(row, peer), 1e6);
      list.push_back({{"ranks", row.ranks},
                      {"bytes", row.bytes},
                      {"wire", "f32"},
                      {"pooled", kind == kPooled},
                      {"sluice_us", or_null(seconds_of(row, kind), 1e6)},
                      {"peers", times},
                      {"minimal_us", or_null(seconds_of(row, kMinimal), 1e6)},
                      {"speedup_over_best_peer", or_null(row.speedup(kind), 1)},
                      {"verified", row.verified}});
    }
  }
  return list;
}

}  // namespace sluice::bench
