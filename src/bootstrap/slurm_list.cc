#include "bootstrap/slurm_list.h"

#include <algorithm>

#include "base/text.h"

namespace sluice::bootstrap {

std::optional<std::int64_t> nth_of_counts(std::string_view list, std::int64_t n,
                                          std::int64_t most) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    const std::size_t times_at = item.find("(x");
    const auto number = base::parse_whole(item.substr(0, times_at), 1, most, "ranks");
    if (!number.ok()) return std::nullopt;
    std::int64_t times = 1;
    if (times_at != std::string_view::npos) {
      if (!item.ends_with(')')) return std::nullopt;
      const auto repeat = base::parse_whole(item.substr(times_at + 2, item.size() - times_at - 3),
                                            1, most, "nodes");
      if (!repeat.ok()) return std::nullopt;
      times = repeat.value();
    }
    if (n < times) return number.value();
    n -= times;
    list.remove_prefix(std::min(list.size(), item.size() + 1));
  }
  return std::nullopt;
}

// A name may have several brackets, and something behind them: "rack[1-2]n[01-04]-ib".
std::string first_of_nodes(std::string_view list) {
  std::string name;
  while (!list.empty() && list[0] != ',') {
    if (list[0] != '[') {
      name += list[0];
      list.remove_prefix(1);
      continue;
    }
    const std::size_t end = list.find(']');
    if (end == std::string_view::npos) return "";
    const std::string_view inside = list.substr(1, end - 1);
    const std::string_view first = inside.substr(0, inside.find_first_of(",-"));
    if (first.empty()) return "";
    name += first;
    list.remove_prefix(end + 1);
  }
  return name;
}

}  // namespace sluice::bootstrap
