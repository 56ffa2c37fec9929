#include "simulate/uncertainty.h"

#include "base/format.h"

namespace sluice::simulate {
namespace {

constexpr double kRounding = 1e-9;

}  // namespace

Status check_all_reduce(const FlowNetwork& network, double bytes, double seconds) {
  const int parties = network.nodes() > 1 ? network.nodes() : network.ranks();
  if (parties == 1 || bytes <= 0) return {};
  const double bus_bytes = 2.0 * (parties - 1) / parties * bytes;
  const double bus = bus_bytes / seconds;
  if (bus <= network.node_bytes_per_s() * (1 + kRounding)) return {};
  return {
      Code::InvalidArgument,
      base::format("refused: {:.4g} bytes over {} ranks in {:.4g} s would be a bus bandwidth of "
                   "{:.4g} GB/s on links of {:.4g} GB/s, which cannot be: report it as a bug",
                   bytes, network.ranks(), seconds, bus / 1e9, network.node_bytes_per_s() / 1e9)};
}

Status check_scaling(const std::vector<ScalePoint>& points) {
  for (const ScalePoint& a : points) {
    for (const ScalePoint& b : points) {
      if (a.ranks < 2 || b.ranks < 2 * a.ranks || a.seconds != b.seconds) continue;
      return {Code::InvalidArgument,
              base::format("refused: {} ranks and {} ranks take the very same {:.4g} s, which no "
                           "schedule does: report it as a bug",
                           a.ranks, b.ranks, a.seconds)};
    }
  }
  return {};
}

Status check_efficiency(int ranks, double efficiency) {
  if (efficiency <= 1 + kRounding) return {};
  return {Code::InvalidArgument,
          base::format("refused: an efficiency of {:.4g} on {} ranks is above 1 and nothing here "
                       "explains it: report it as a bug",
                       efficiency, ranks)};
}

}  // namespace sluice::simulate
