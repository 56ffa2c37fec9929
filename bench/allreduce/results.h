// results.h - the measured times as a table and as JSON.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bench {

struct SizeRange {
  const char* name;
  std::uint64_t first;
  std::uint64_t last;
};

// Prints a line: the geometric mean of `ratio` over the rows of each range, and the worst row.
template <class AnyRow, class Ratio>
void print_means(const std::string& label, std::span<const AnyRow> rows,
                 std::span<const SizeRange> ranges, const Ratio& ratio, double unit = 1,
                 const char* suffix = "") {
  std::string line = base::format("  {:<44}", label);
  const AnyRow* worst = nullptr;
  for (const SizeRange& range : ranges) {
    double logs = 0;
    int count = 0;
    for (const AnyRow& row : rows) {
      const std::optional<double> value = ratio(row);
      if (!value) continue;
      if (worst == nullptr || *value < *ratio(*worst)) worst = &row;
      if (row.bytes < range.first || row.bytes > range.last) continue;
      logs += std::log(*value);
      ++count;
    }
    const std::string mean =
        count == 0 ? "-" : base::format("{:.2f}{}", unit * std::exp(logs / count), suffix);
    line += base::format(" {:>10}", mean);
  }
  if (worst == nullptr) return;  // no row has a ratio
  base::print("{}   worst {:.2f}{} at {}\n", line, unit * *ratio(*worst), suffix,
              base::format_bytes(static_cast<double>(worst->bytes)));
}

// The line above those of print_means().
inline void print_ranges(std::span<const SizeRange> ranges) {
  std::string line = base::format("  {:<44}", "geometric means");
  for (const SizeRange& range : ranges) line += base::format(" {:>10}", range.name);
  base::print("{}\n", line);
}

inline const std::string kPooled = "sluice";
inline const std::string kForeign = "foreign";
inline const std::string kMinimal = "minimal";
// The other build of Sluice, with --against.
inline const std::string kOtherPooled = "other";
inline const std::string kOtherForeign = "other-frgn";

struct Row {
  int ranks = 0;
  std::uint64_t bytes = 0;
  std::map<std::string, double>
      seconds;           // per all-reduce, by contender; without the contenders that failed
  bool verified = true;  // false if a contender failed or a result was wrong

  std::optional<double> best_peer_s() const;
  // The best peer's time / Sluice's time with this kind of memory.
  std::optional<double> speedup(const std::string& kind) const;
};

void print_header(int ranks, const std::vector<std::string>& contenders);
void print_row(const Row& row, const std::vector<std::string>& contenders);

// Geometric means by range of sizes, the worst row, and Sluice's fraction of the minimal kernel's
// rate.
void print_summary(std::span<const Row> rows);

// The time of `contender` / the time of `other`: the geometric mean over all rows, and the worst
// row.
struct BuildRatio {
  double mean = 0;
  double worst = 0;
  const Row* row = nullptr;  // null: no row has both
};
BuildRatio slowest_against(std::span<const Row> rows, const std::string& contender,
                           const std::string& other);

// Two JSON rows per row: pooled memory and foreign memory.
nlohmann::ordered_json to_json(std::span<const Row> rows, const std::vector<std::string>& peers);

}  // namespace sluice::bench
