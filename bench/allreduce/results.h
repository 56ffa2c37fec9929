// results.h - what was measured: as a table, and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::bench {

inline const std::string kPooled = "sluice";
inline const std::string kForeign = "foreign";
inline const std::string kMinimal = "minimal";
// Another build of Sluice.
inline const std::string kOtherPooled = "other";
inline const std::string kOtherForeign = "other-frgn";

struct Row {
  int ranks = 0;
  std::uint64_t bytes = 0;
  std::map<std::string, double> seconds;  // of an all-reduce, by contender; who failed is missing
  bool verified = true;                   // of those who did not fail every result was right

  std::optional<double> best_peer_s() const;
  // The best peer's time / that of Sluice with that kind of memory.
  std::optional<double> speedup(const std::string& kind) const;
};

void print_header(int ranks, const std::vector<std::string>& contenders);
void print_row(const Row& row, const std::vector<std::string>& contenders);

// Geometric means by range of sizes, the worst row, and the share of the minimal kernel's rate.
void print_summary(std::span<const Row> rows);

// One contender's time / another's: the mean over rows, and the row where it is largest.
struct BuildRatio {
  double mean = 0;
  double worst = 0;
  const Row* row = nullptr;  // null: there is no row with both
};
BuildRatio slowest_against(std::span<const Row> rows, const std::string& contender,
                           const std::string& other);

// Two rows each: pooled memory, and foreign.
nlohmann::ordered_json to_json(std::span<const Row> rows, const std::vector<std::string>& peers);

}  // namespace sluice::bench
