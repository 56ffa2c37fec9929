#include "engine/select/override.h"

#include "base/format.h"
#include "base/text.h"

namespace sluice::engine {
namespace {

Result<Override> parse_override(std::string_view text) {
  const std::size_t at = text.find('@');
  const Result<const Algorithm*> algorithm = find_algorithm(text.substr(0, at));
  if (!algorithm.ok()) return algorithm.status();
  Override parsed{.algorithm = algorithm.value()};
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

Result<std::vector<Override>> parse_overrides(std::string_view text) {
  std::vector<Override> overrides;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const Result<Override> parsed = parse_override(text.substr(0, comma));
    if (!parsed.ok()) return parsed.status();
    overrides.push_back(parsed.value());
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return overrides;
}

Result<std::vector<Override>> overrides_of(const bootstrap::Environment& environment) {
  auto overrides = parse_overrides(environment.text(bootstrap::variable::kAlgorithm).value_or(""));
  if (overrides.ok()) return overrides;
  return Status{
      overrides.status().code(),
      base::format("{}: {}", bootstrap::variable::kAlgorithm.name, overrides.status().message())};
}

const Algorithm* overriding(const std::vector<Override>& overrides, Collective collective,
                            std::int64_t bytes) {
  for (const Override& each : overrides) {
    if (each.least <= bytes && bytes < each.end && each.algorithm->supports(collective))
      return each.algorithm;
  }
  return nullptr;
}

}  // namespace sluice::engine
