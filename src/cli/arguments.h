// arguments.h - parses the option values that several commands share. All functions throw Error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/algorithms.h"
#include "sluice/schedule.h"

namespace sluice::cli {

inline constexpr int kMostRanks = 1 << 16;
inline constexpr int kMostSegments = 1 << 12;

Collective parse_collective(std::string_view text);

// "2x4": 2 nodes of 4 ranks. "3+5": a node of 3 ranks and a node of 5.
std::vector<int> parse_grid(std::string_view text);

// Grids separated by commas. Either side of an x may be a range: "1-16x1-16,3+5".
std::vector<std::vector<int>> parse_grids(std::string_view text);

// "2x4" if the nodes are equal, else "3+5"; "" for an empty grid.
std::string show_grid(const std::vector<int>& grid);

// The same for JSON; null for an empty grid.
nlohmann::ordered_json grid_json(const std::vector<int>& grid);

// Throws the reason if the schedule of a file is not proven.
void require_proof(const Algorithm& file);

// "90", "1.5s", "5m", "2h"; the default unit is seconds. From a millisecond to a year.
std::chrono::milliseconds parse_duration(std::string_view text);

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};
// "node-a:29500", "10.0.0.1:29500", "[::1]:29500".
HostAndPort parse_host_and_port(std::string_view text);

// "1K:256M": 1 KiB and its doublings up to 256 MiB. "4,1M": these two sizes. Each size must be a
// multiple of `unit` bytes.
std::vector<std::int64_t> parse_sizes(std::string_view text, std::size_t unit);

// Comma-separated powers of two.
std::vector<int> parse_segments(std::string_view text);

// The value of a line of /proc/meminfo, such as "MemAvailable"; 0 if there is no such line.
double memory_bytes(const char* key);

// Throws Error if the machine has less memory available.
void require_memory(double bytes);

}  // namespace sluice::cli
