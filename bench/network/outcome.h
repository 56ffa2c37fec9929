// outcome.h - the results of the network benchmark: tables, means, JSON and lower bounds.
//
// An all-reduce moves 2(n-1)/n bytes per byte of the buffer, the least that each rank must send;
// processor time is given per such byte, over all ranks. Wire bytes are the bytes that a host's
// interface sent, less 66 (Ethernet, IP, and TCP with time stamps) per packet; a large segment
// passes the interface as one packet. They include warm-up, barriers and acknowledgements.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/types.h"
#include "tests/box/cluster_box.h"

namespace sluice::bench {

struct EmulatedCluster {
  int hosts = 4;
  int ranks_per_host = 1;
  int mbit_per_s = 1000;  // 0: unlimited
  std::vector<int> groups;
  int uplink_mbit_per_s = 200;  // likewise

  int ranks() const { return hosts * ranks_per_host; }
  int host_of(Rank rank) const { return rank / ranks_per_host; }
  // The least that a rank sends.
  double moved_bytes(double bytes) const { return 2.0 * (ranks() - 1) / ranks() * bytes; }
  // The least that a host sends, once its ranks have reduced their buffers.
  double host_bytes(double bytes) const { return 2.0 * (hosts - 1) / hosts * bytes; }
  // A lower bound of the time: the links of hosts and groups, without headers. 0: they have no
  // limit.
  double least_s(double bytes) const;
};

// Sluice is compared with peers; references measure the network itself.
enum class Role : std::uint8_t { Sluice, Peer, Reference };

struct Entry {
  std::string contender;
  Role role = Role::Peer;
  DataType type = DataType::F32;
  double bytes = 0;     // of the buffer of this type
  std::string setting;  // the best setting
  double seconds = 0;
  double cpu_s = 0;                          // over all ranks
  double wire_ratio = 0;                     // wire bytes of the busiest host / its least bytes
  std::map<std::string, double> settings_s;  // of all settings
};

struct NetworkRow {
  std::uint64_t bytes = 0;  // as f32
  std::vector<Entry> entries;

  const Entry* find(const std::string& contender) const;
  // The best peer's time / the entry's time.
  std::optional<double> speedup(const Entry& entry) const;
  // The entry's bytes per second / the stream's.
  std::optional<double> share_of_stream(const Entry& entry) const;
};

void print_title(const EmulatedCluster& cluster);
void print_row(const NetworkRow& row, const EmulatedCluster& cluster);
// Sluice's speedup over the best peer and its fraction of the stream's rate: geometric means and
// the worst row.
void print_summary(std::span<const NetworkRow> rows);
nlohmann::ordered_json to_json(std::span<const NetworkRow> rows, const EmulatedCluster& cluster);

}  // namespace sluice::bench
