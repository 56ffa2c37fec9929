// outcome.h - what was measured over a cluster: tables, means, JSON, and the bounds to hold it to.
//
// Bytes an all-reduce moves are 2(n-1)/n of the buffer, what each rank must send at the least;
// processor time is told per such byte of all ranks. Wire bytes are those that a host's interface
// counted as sent, less 66 (Ethernet, IP, TCP with time stamps) for every packet it counted: large
// segments pass it whole, with one header. They hold warm-up, barriers and acknowledgements too.
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
  int mbit_per_s = 1000;
  std::vector<int> groups;
  int uplink_mbit_per_s = 200;

  int ranks() const { return hosts * ranks_per_host; }
  int host_of(Rank rank) const { return rank / ranks_per_host; }
  // The least a rank sends.
  double moved_bytes(double bytes) const { return 2.0 * (ranks() - 1) / ranks() * bytes; }
  // The least a host sends, its ranks having met before.
  double host_bytes(double bytes) const { return 2.0 * (hosts - 1) / hosts * bytes; }
  // No all-reduce is faster: the links of hosts and of groups, headers not counted.
  double least_s(double bytes) const;
};

// Sluice is compared with peers; references only say what the network gives.
enum class Role : std::uint8_t { Sluice, Peer, Reference };

struct Entry {
  std::string contender;
  Role role = Role::Peer;
  DataType type = DataType::F32;
  double bytes = 0;     // of the buffer in that type
  std::string setting;  // the best one
  double seconds = 0;
  double cpu_s = 0;                          // of all ranks
  double wire_ratio = 0;                     // busiest host's wire bytes / closed form
  std::map<std::string, double> settings_s;  // all of them
};

struct NetworkRow {
  std::uint64_t bytes = 0;  // as f32
  std::vector<Entry> entries;

  const Entry* find(const std::string& contender) const;
  // The best peer's time / that one's.
  std::optional<double> speedup(const Entry& entry) const;
  // Its bytes a second / those of the stream.
  std::optional<double> share_of_stream(const Entry& entry) const;
};

void print_title(const EmulatedCluster& cluster);
void print_row(const NetworkRow& row, const EmulatedCluster& cluster);
// Geometric means of Sluice over the best peer and of the stream's rate, and the worst row.
void print_summary(std::span<const NetworkRow> rows);
nlohmann::ordered_json to_json(std::span<const NetworkRow> rows, const EmulatedCluster& cluster);

}  // namespace sluice::bench
