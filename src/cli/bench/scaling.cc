
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/bench/bench_train.h"
#include "cli/train/figures.h"
#include "sluice/status.h"

namespace sluice::cli {

std::vector<ScalingRow> scaling_rows(const std::vector<int>& ranks, const std::vector<int>& batches,
                                     bool strong) {
  std::vector<ScalingRow> rows;
  for (const int batch : batches) {
    const int global = batch * ranks.front();
    for (const int count : ranks) {
      if (strong && global % count != 0) {
        throw Error{Status{Code::InvalidArgument,
                           base::format("a global batch of {} cannot be shared by {} ranks: give a "
                                        "--batch that is a multiple of {}",
                                        global, count, count)}};
      }
      rows.push_back({.ranks = count, .batch = strong ? global / count : batch});
    }
  }
  return rows;
}

void set_efficiencies(std::vector<ScalingRow>& rows, bool strong) {
  const auto alike = [&](const ScalingRow& a, const ScalingRow& b) {
    return strong ? a.batch * a.ranks == b.batch * b.ranks : a.batch == b.batch;
  };
  for (ScalingRow& row : rows) {
    const ScalingRow* first = &row;
    for (const ScalingRow& other : rows) {
      if (alike(row, other) && other.ranks < first->ranks) first = &other;
    }
    const double one = first->images_per_s / first->ranks;
    row.efficiency = one > 0 ? row.images_per_s / (one * row.ranks) : 0;
  }
}

std::string scaling_text(const std::vector<ScalingRow>& rows) {
  std::string text = base::format("{:>6} {:>13} {:>13} {:>12} {:>11}\n", "ranks", "batch a rank",
                                  "global batch", "images/s", "efficiency");
  for (const ScalingRow& row : rows) {
    text += base::format("{:>6} {:>13} {:>13} {:>12} {:>10.1f}%\n", row.ranks, row.batch,
                         row.batch * row.ranks, speed_text(row.images_per_s), 100 * row.efficiency);
  }
  return text;
}

nlohmann::ordered_json scaling_json(const std::vector<ScalingRow>& rows) {
  auto document = nlohmann::ordered_json::array();
  for (const ScalingRow& row : rows) {
    document.push_back({{"ranks", row.ranks},
                        {"batch", row.batch},
                        {"images_per_s", row.images_per_s},
                        {"efficiency", row.efficiency}});
  }
  return document;
}

}  // namespace sluice::cli
