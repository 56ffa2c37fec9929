#include "cli/train/sparse_outlook.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/text.h"

namespace sluice::cli {

SparseOutlook sparse_outlook(const Selector& selector, const CostConstants& constants,
                             std::int64_t bytes, double sparsity, std::int64_t chunk) {
  // Each gradient is added to what is held back, and that is read again for its norms.
  constexpr double kPasses = 2;
  constexpr double kBytesOfAnElement = 4;
  SparseOutlook outlook{.sparsity = sparsity};
  const double whole = static_cast<double>(bytes);
  const double chunk_bytes = kBytesOfAnElement * static_cast<double>(chunk);
  const double chosen = std::ceil(whole * (1 - sparsity) / chunk_bytes) * chunk_bytes;
  const double norms = std::ceil(whole / chunk_bytes) * kBytesOfAnElement;
  outlook.sent_bytes = std::llround(std::min(chosen, whole) + norms);
  outlook.dense_s = selector.choose(bytes).seconds;
  outlook.choosing_s = kPasses * whole * constants.reduce_s_per_byte;
  outlook.sparse_s = selector.choose(outlook.sent_bytes).seconds + outlook.choosing_s;
  return outlook;
}

std::string show(const SparseOutlook& outlook) {
  const std::string sent = base::format(
      "With {:.0f}% of the chunks held back {} are sent: {}, {} of them to add up and choose,",
      100 * outlook.sparsity, base::format_bytes(static_cast<double>(outlook.sent_bytes)),
      base::format_seconds(outlook.sparse_s), base::format_seconds(outlook.choosing_s));
  const std::string against = base::format("against {}", base::format_seconds(outlook.dense_s));
  if (!outlook.pays())
    return base::format("{} {}: sparse gradients do not pay here.", sent, against);
  return base::format("{} {}: sparse gradients pay, {:.1f} times, where backward does not hide it.",
                      sent, against, outlook.dense_s / outlook.sparse_s);
}

}  // namespace sluice::cli
