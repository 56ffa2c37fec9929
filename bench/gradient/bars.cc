#include "bench/gradient/bars.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "sluice/status.h"

namespace sluice::bench {

std::vector<Bar> bars_of(const std::vector<std::string>& texts, const std::vector<Way>& ways) {
  std::vector<Bar> bars;
  for (const std::string& text : texts) {
    const std::size_t first = text.find(':');
    const std::size_t second = text.find(':', first + 1);
    const auto way = std::find_if(ways.begin(), ways.end(), [&](const Way& each) {
      return each.name == text.substr(0, first);
    });
    const auto unit =
        std::find(kUnits.begin(), kUnits.end(), text.substr(first + 1, second - first - 1));
    const double times = second == std::string::npos ? 0 : std::atof(text.c_str() + second + 1);
    if (way == ways.end() || unit == kUnits.end() || !(times > 0))
      throw Error{Status{Code::InvalidArgument,
                         base::format("--most {}: not WAY:UNIT:TIMES of a way that takes part and "
                                      "one of {}",
                                      text, base::join(kUnits, ", "))}};
    bars.push_back({.way = static_cast<std::size_t>(way - ways.begin()),
                    .unit = static_cast<std::size_t>(unit - kUnits.begin()),
                    .times = times});
  }
  return bars;
}

}  // namespace sluice::bench
