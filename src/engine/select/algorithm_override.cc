#include "engine/select/algorithm_override.h"

#include "base/format.h"
#include "base/text.h"

namespace sluice::engine {
namespace {

Result<AlgorithmOverride> parse_override(std::string_view text) {
  const std::size_t at = text.find('@');
  const Result<const Algorithm*> algorithm = find_algorithm(text.substr(0, at));
  if (!algorithm.ok()) return algorithm.status();
  AlgorithmOverride parsed{.algorithm = algorithm.value()};
  if (at == std::string_view::npos) return parsed;
  const std::string_view range = text.substr(at + 1);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) {
    return Status{
        Code::InvalidArgument,
        base::format("{} is not a range of sizes: write 4K-1M, -4K or 1M-", base::quote(range))};
  }
  const auto read = [](std::string_view number, std::int64_t& into) {
    if (number.empty()) return Status{};
    const Result<std::int64_t> bytes = base::parse_bytes(number);
    if (bytes.ok()) into = bytes.value();
    return bytes.status();
  };
  if (Status status = read(range.substr(0, dash), parsed.least); !status.ok()) return status;
  if (Status status = read(range.substr(dash + 1), parsed.end); !status.ok()) return status;
  if (parsed.least >= parsed.end) {
    return Status{Code::InvalidArgument,
                  base::format("the range {} holds no size", base::quote(range))};
  }
  return parsed;
}

}  // namespace

Result<std::vector<AlgorithmOverride>> parse_overrides(std::string_view text) {
  std::vector<AlgorithmOverride> overrides;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const Result<AlgorithmOverride> parsed = parse_override(text.substr(0, comma));
    if (!parsed.ok()) return parsed.status();
    overrides.push_back(parsed.value());
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return overrides;
}

Result<std::vector<AlgorithmOverride>> overrides_of(const bootstrap::Environment& environment) {
  auto overrides = parse_overrides(environment.text(bootstrap::variable::kAlgorithm).value_or(""));
  if (overrides.ok()) return overrides;
  return Status{
      overrides.status().code(),
      base::format("{}: {}", bootstrap::variable::kAlgorithm.name, overrides.status().message())};
}

const Algorithm* overriding(const std::vector<AlgorithmOverride>& overrides, Collective collective,
                            std::int64_t bytes) {
  for (const AlgorithmOverride& each : overrides) {
    if (each.least <= bytes && bytes < each.end && each.algorithm->supports(collective))
      return each.algorithm;
  }
  return nullptr;
}

}  // namespace sluice::engine
