#include "cli/arguments.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "algorithms/schedule_file.h"
#include "base/format.h"
#include "base/text.h"
#include "engine/proofs.h"
#include "sluice/status.h"

namespace sluice::cli {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::vector<int>> grids_of(std::string_view text) {
  std::vector<std::vector<int>> grids;
  if (text.find('x') != std::string_view::npos) {
    const auto sides = split(text, 'x');
    if (sides.size() != 2)
      base::refuse(base::format("{} is not a grid: give NODESxRANKS or 3+5", base::quote(text)));
    const auto nodes = base::parse_list(sides[0], 1, kMostRanks, "nodes of a grid").value();
    const auto ranks = base::parse_list(sides[1], 1, kMostRanks, "ranks of a grid's node").value();
    for (const int x : nodes) {
      for (const int y : ranks) {
        if (std::int64_t{x} * y > kMostRanks) {
          base::refuse(base::format("grid {}x{} has more than {} ranks", x, y, kMostRanks));
        }
        grids.emplace_back(static_cast<std::size_t>(x), y);
      }
    }
    return grids;
  }
  std::vector<int>& grid = grids.emplace_back();
  std::int64_t sum = 0;
  for (const std::string_view part : split(text, '+')) {
    const auto ranks = base::parse_integer(part, 1, kMostRanks, "ranks of a grid's node").value();
    sum += ranks;
    grid.push_back(static_cast<int>(ranks));
  }
  if (sum > kMostRanks)
    base::refuse(base::format("grid {} has more than {} ranks", base::quote(text), kMostRanks));
  return grids;
}

}  // namespace

void require_proof(const Algorithm& file) {
  (void)engine::Proofs::of_process().verdict_on(file, file.file->schedule.shape).value();
}

Collective parse_collective(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Collective collective : kCollectives) {
    if (name(collective) == text) return collective;
    names.push_back(name(collective));
  }
  const std::string_view nearest = base::nearest_name(text, names);
  base::refuse(base::format("there is no collective {}: {}", base::quote(text),
                            nearest.empty()
                                ? base::format("choose from {}", base::join(names, ", "))
                                : base::format("did you mean {}?", nearest)));
}

std::vector<int> parse_grid(std::string_view text) {
  auto grids = grids_of(text);
  if (grids.size() != 1)
    base::refuse(base::format("{} is more than one grid: give a single grid", base::quote(text)));
  return std::move(grids.front());
}

std::vector<std::vector<int>> parse_grids(std::string_view text) {
  std::vector<std::vector<int>> grids;
  for (const std::string_view part : split(text, ',')) {
    for (auto& grid : grids_of(part)) grids.push_back(std::move(grid));
  }
  return grids;
}

std::string show_grid(const std::vector<int>& grid) {
  if (grid.empty()) return {};
  const bool equal =
      std::all_of(grid.begin(), grid.end(), [&](int n) { return n == grid.front(); });
  return equal ? base::format("{}x{}", grid.size(), grid.front())
               : base::format("{}", base::join(grid, "+"));
}

nlohmann::ordered_json grid_json(const std::vector<int>& grid) {
  if (grid.empty()) return nullptr;
  return show_grid(grid);
}

std::chrono::milliseconds parse_duration(std::string_view text) {
  constexpr double kYear = 365.0 * 24 * 3600;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  const double scale = unit == "ms"                  ? 1e-3
                       : unit.empty() || unit == "s" ? 1
                       : unit == "m"                 ? 60
                       : unit == "h"                 ? 3600
                                                     : 0;
  const double seconds = number * scale;
  if (error != std::errc{} || !(seconds >= 1e-3) || seconds > kYear) {
    base::refuse(base::format("{} is not a duration: give seconds, or a number with ms, s, m or h",
                              base::quote(text)));
  }
  return std::chrono::milliseconds{std::llround(seconds * 1e3)};
}

HostAndPort parse_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  const bool address_of_colons = host.find(':') != std::string_view::npos;
  if (colon == std::string_view::npos || host.empty() || text.ends_with(']') ||
      address_of_colons != brackets || host.find_first_of("[] \t") != std::string_view::npos) {
    base::refuse(
        base::format("{} is not an address with a port: give ADDR:PORT, such as 10.0.0.1:29500, "
                     "node-a:29500 or [::1]:29500",
                     base::quote(text)));
  }
  const auto port = base::parse_integer(text.substr(colon + 1), 1, 65535, "the port").value();
  return {std::string{host}, static_cast<std::uint16_t>(port)};
}

std::vector<std::int64_t> parse_sizes(std::string_view text, std::size_t unit) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, ':');
    if (ends.size() > 2)
      base::refuse(base::format("{} is not a range of sizes: give FIRST:LAST", base::quote(part)));
    const std::int64_t first = base::parse_bytes(ends.front()).value();
    const std::int64_t last = base::parse_bytes(ends.back()).value();
    if (first < 1 || first % static_cast<std::int64_t>(unit) != 0) {
      base::refuse(base::format("{} is not a whole number of elements of {} bytes",
                                base::quote(ends.front()), unit));
    }
    if (last < first)
      base::refuse(
          base::format("the range {} ends before it begins: give FIRST:LAST", base::quote(part)));
    sizes.push_back(first);
    while (sizes.back() <= last / 2) sizes.push_back(2 * sizes.back());
  }
  return sizes;
}

std::vector<int> parse_segments(std::string_view text) {
  auto counts = base::parse_list(text, 1, kMostSegments, "segments").value();
  for (const int count : counts) {
    if (!std::has_single_bit(static_cast<unsigned>(count)))
      base::refuse(base::format("segments must be powers of two, not {}", count));
  }
  return counts;
}

double memory_bytes(const char* key) {
  std::ifstream file{"/proc/meminfo"};
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(line.find(':') + 1)) * 1024;
  }
  return 0;
}

void require_memory(double bytes) {
  const double available = memory_bytes("MemAvailable");
  if (available <= 0 || bytes <= available) return;
  base::refuse(
      base::format("this needs {} of memory, but only {} is available: ask for smaller sizes or "
                   "fewer ranks",
                   base::format_bytes(bytes), base::format_bytes(available)));
}

}  // namespace sluice::cli
