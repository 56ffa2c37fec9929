// arguments.h - the values that several commands take, and the memory they need. All throw Error
// with one sentence.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::cli {

inline constexpr int kMostRanks = 1 << 16;
inline constexpr int kMostSegments = 1 << 12;

Collective parse_collective(std::string_view text);

// "2x4": 2 nodes of 4 ranks. "3+5": a node of 3 and one of 5.
std::vector<int> parse_grid(std::string_view text);

// Grids separated by commas; either side of an x may be a range: "1-16x1-16,3+5".
std::vector<std::vector<int>> parse_grids(std::string_view text);

// "2x4" where the nodes are equal, else "3+5"; "" for none.
std::string show_grid(const std::vector<int>& grid);

// The same for a JSON document: null for none.
nlohmann::ordered_json grid_json(const std::vector<int>& grid);

// "90", "1.5s", "5m", "2h"; seconds without a unit, a millisecond at least, a year at most.
std::chrono::milliseconds parse_duration(std::string_view text);

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};
// "node-a:29500", "10.0.0.1:29500", "[::1]:29500".
HostAndPort parse_host_and_port(std::string_view text);

// "1K:256M": 1 KiB and its doublings up to 256 MiB. "4,1M": these. Each a multiple of `unit` bytes.
std::vector<std::int64_t> parse_sizes(std::string_view text, std::size_t unit);

// Each a power of two.
std::vector<int> parse_segments(std::string_view text);

// A line of /proc/meminfo, as "MemAvailable"; 0 where there is none.
double memory_bytes(const char* key);

// Throws Error where the machine has less than that available.
void require_memory(double bytes);

}  // namespace sluice::cli
