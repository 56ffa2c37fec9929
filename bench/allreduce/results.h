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

// Two rows each: pooled memory, and foreign.
nlohmann::ordered_json to_json(std::span<const Row> rows, const std::vector<std::string>& peers);

}  // namespace sluice::bench
