#include "bench/network/outcome.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "bench/allreduce/results.h"

namespace sluice::bench {
namespace {

constexpr SizeRange kRanges[] = {{"to 16 KiB", 0, 16 << 10},
                                 {"16-256 MiB", 16 << 20, 256 << 20},
                                 {"all sizes", 0, ~std::uint64_t{0}}};
// Below this size, headers and barriers are most of the bytes sent.
constexpr std::uint64_t kLeastForWire = 64 << 10;

double cpu_ns_per_byte(const Entry& entry, const EmulatedCluster& cluster) {
  return entry.cpu_s * 1e9 / (cluster.moved_bytes(entry.bytes) * cluster.ranks());
}

std::optional<double> share_of_bound(const Entry& entry, const EmulatedCluster& cluster) {
  const double least_s = cluster.least_s(entry.bytes);
  return least_s > 0 ? std::optional{least_s / entry.seconds} : std::nullopt;
}

std::string rate_text(int mbit_per_s) {
  return mbit_per_s == 0 ? "unlimited rate" : base::format("{} Mbit/s", mbit_per_s);
}

}  // namespace

double EmulatedCluster::least_s(double bytes) const {
  constexpr double kBytesPerMbit = 1e6 / 8;
  double least = mbit_per_s == 0 ? 0 : host_bytes(bytes) / (mbit_per_s * kBytesPerMbit);
  const auto count = static_cast<double>(groups.size());
  if (groups.size() > 1 && uplink_mbit_per_s != 0)
    least = std::max(least, 2 * (count - 1) / count * bytes / (uplink_mbit_per_s * kBytesPerMbit));
  return least;
}

const Entry* NetworkRow::find(const std::string& contender) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.contender == contender; });
  return found == entries.end() ? nullptr : &*found;
}

std::optional<double> NetworkRow::speedup(const Entry& entry) const {
  std::optional<double> best_s;
  for (const Entry& peer : entries) {
    if (peer.role == Role::Peer && (!best_s || peer.seconds < *best_s)) best_s = peer.seconds;
  }
  return best_s ? std::optional{*best_s / entry.seconds} : std::nullopt;
}

std::optional<double> NetworkRow::share_of_stream(const Entry& entry) const {
  const Entry* const stream = find("stream");
  if (stream == nullptr) return std::nullopt;
  return entry.bytes / entry.seconds / (stream->bytes / stream->seconds);
}

void print_title(const EmulatedCluster& cluster) {
  base::print("\nAll-reduce in place over {} hosts with {} rank{} each, links of {}", cluster.hosts,
              cluster.ranks_per_host, cluster.ranks_per_host == 1 ? "" : "s",
              rate_text(cluster.mbit_per_s));
  if (cluster.groups.size() > 1) {
    base::print("; groups of {} behind uplinks of {}", base::join(cluster.groups, "+"),
                rate_text(cluster.uplink_mbit_per_s));
  }
  base::print("\n{:>10}  {:<20} {:<15} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "size", "contender",
              "setting", "us", "x peer", "% stream", "% bound", "CPU ns/B", "wire/form");
}

void print_row(const NetworkRow& row, const EmulatedCluster& cluster) {
  std::string size = base::format_bytes(static_cast<double>(row.bytes));
  for (const Entry& entry : row.entries) {
    const auto shown = [](std::optional<double> value, double unit, int digits) {
      return value ? base::format("{:.{}f}", unit * *value, digits) : "-";
    };
    const bool wire = row.bytes >= kLeastForWire && entry.wire_ratio > 0;
    base::print("{:>10}  {:<20} {:<15} {:>12.1f} {:>9} {:>9} {:>9} {:>9.2f} {:>9}\n", size,
                entry.contender, entry.setting, entry.seconds * 1e6,
                entry.role == Role::Reference ? "-" : shown(row.speedup(entry), 1, 2),
                shown(row.share_of_stream(entry), 100, 1),
                shown(share_of_bound(entry, cluster), 100, 1), cpu_ns_per_byte(entry, cluster),
                wire ? base::format("{:.3f}", entry.wire_ratio) : "-");
    size.clear();
  }
  std::fflush(stdout);
}

void print_summary(std::span<const NetworkRow> rows) {
  std::vector<std::string> names;
  for (const NetworkRow& row : rows) {
    for (const Entry& entry : row.entries) {
      if (entry.role == Role::Reference) continue;
      if (std::find(names.begin(), names.end(), entry.contender) == names.end())
        names.push_back(entry.contender);
    }
  }
  base::print("\n");
  print_ranges(kRanges);
  for (const std::string& name : names) {
    print_means<NetworkRow>(name + ", speedup over the best peer", rows, kRanges,
                            [&](const NetworkRow& row) -> std::optional<double> {
                              const Entry* const entry = row.find(name);
                              return entry == nullptr ? std::nullopt : row.speedup(*entry);
                            });
    print_means<NetworkRow>(name + ", fraction of the stream's rate", rows, kRanges,
                            [&](const NetworkRow& row) -> std::optional<double> {
                              const Entry* const entry = row.find(name);
                              return entry == nullptr ? std::nullopt : row.share_of_stream(*entry);
                            });
  }
}

nlohmann::ordered_json to_json(std::span<const NetworkRow> rows, const EmulatedCluster& cluster) {
  const auto or_null = [](std::optional<double> value) -> nlohmann::ordered_json {
    if (!value) return nullptr;
    return *value;
  };
  auto list = nlohmann::ordered_json::array();
  for (const NetworkRow& row : rows) {
    auto contenders = nlohmann::ordered_json::array();
    for (const Entry& entry : row.entries) {
      auto settings = nlohmann::ordered_json::object();
      for (const auto& [setting, seconds] : entry.settings_s) settings[setting] = seconds * 1e6;
      contenders.push_back({{"contender", entry.contender},
                            {"setting", entry.setting},
                            {"wire", name(entry.type)},
                            {"buffer_bytes", entry.bytes},
                            {"us", entry.seconds * 1e6},
                            {"settings_us", settings},
                            {"speedup_over_best_peer", or_null(row.speedup(entry))},
                            {"share_of_stream", or_null(row.share_of_stream(entry))},
                            {"share_of_bound", or_null(share_of_bound(entry, cluster))},
                            {"cpu_ns_per_byte", cpu_ns_per_byte(entry, cluster)},
                            {"wire_bytes_per_closed_form", entry.wire_ratio}});
    }
    list.push_back({{"bytes", row.bytes},
                    {"bound_us", cluster.least_s(static_cast<double>(row.bytes)) * 1e6},
                    {"contenders", contenders}});
  }
  return {{"hosts", cluster.hosts},
          {"ranks_per_host", cluster.ranks_per_host},
          {"mbit_per_s", cluster.mbit_per_s},
          {"groups", cluster.groups},
          {"uplink_mbit_per_s", cluster.uplink_mbit_per_s},
          {"rows", list}};
}

}  // namespace sluice::bench
