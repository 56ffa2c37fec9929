#include "engine/proofs.h"

#include "base/build_id.h"
#include "base/format.h"
#include "engine/select/constants.h"

namespace sluice::engine {
namespace {

// All that a proof depends on, besides the build.
std::string key_of(const Algorithm& algorithm, const Shape& shape) {
  return base::format("{} version {}, {}, ranks {}, grid {}, root {}, segments {}", algorithm.name,
                      algorithm.version, name(shape.collective), shape.ranks,
                      base::join(shape.grid, "+"), shape.root, shape.segments);
}

ProofCache cache_of_process() {
  const std::string build = base::build_id();
  return {proof_cache_path(bootstrap::Environment::of_process(), build), build};
}

}  // namespace

std::filesystem::path proof_cache_path(const bootstrap::Environment& environment,
                                       const std::string& build) {
  const std::filesystem::path folder = cache_folder(environment);
  if (folder.empty() || build.empty()) return {};
  return folder / base::format("proofs-{}.txt", build);
}

Proofs& Proofs::of_process() {
  static Proofs proofs{cache_of_process()};
  return proofs;
}

std::optional<Status> Proofs::find(const std::string& key) {
  if (const auto known = verdicts_.find(key); known != verdicts_.end()) return known->second;
  if (!cache_.contains(key)) return std::nullopt;
  ++counts_.from_cache;
  return verdicts_[key] = {};
}

std::optional<Status> Proofs::known_verdict(const Algorithm& algorithm, const Shape& shape) {
  const std::unique_lock lock{mutex_, std::try_to_lock};
  return lock ? find(key_of(algorithm, shape)) : std::nullopt;
}

Status Proofs::verdict_on(const Algorithm& algorithm, const Shape& shape) {
  const std::string key = key_of(algorithm, shape);
  const std::lock_guard lock{mutex_};
  if (const std::optional<Status> known = find(key)) return *known;
  const Proof proof = prove(algorithm, shape);
  ++counts_.made;
  if (proof.proven) {
    cache_.add(key);
    return verdicts_[key] = {};
  }
  return verdicts_[key] = {Code::NotProven, base::format("{} is not proven and will not run: {}",
                                                         algorithm.name, proof.reason)};
}

ProofCounts Proofs::counts() const {
  const std::lock_guard lock{mutex_};
  return counts_;
}

}  // namespace sluice::engine
