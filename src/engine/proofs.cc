#include "engine/proofs.h"

#include "algorithms/schedule_file.h"
#include "base/build_id.h"
#include "base/format.h"
#include "engine/select/constants.h"
#include "schedule/marks.h"

namespace sluice::engine {
namespace {

// All that a proof depends on, besides the build.
std::string key_of(const Algorithm& algorithm, const Shape& shape) {
  if (algorithm.file != nullptr) return base::format("schedule {:016x}", algorithm.file->hash);
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

std::optional<Verdict> Proofs::find(const std::string& key) {
  if (const auto known = verdicts_.find(key); known != verdicts_.end()) return known->second;
  const std::optional<std::string> marks = cache_.find(key);
  if (!marks) return std::nullopt;
  ++counts_.from_cache;
  return verdicts_.emplace(key, *marks).first->second;
}

std::optional<Verdict> Proofs::known_verdict(const Algorithm& algorithm, const Shape& shape) {
  const std::unique_lock lock{mutex_, std::try_to_lock};
  return lock ? find(key_of(algorithm, shape)) : std::nullopt;
}

Verdict Proofs::verdict_on(const Algorithm& algorithm, const Shape& shape) {
  const std::string key = key_of(algorithm, shape);
  const std::lock_guard lock{mutex_};
  if (const std::optional<Verdict> known = find(key)) return *known;
  std::vector<schedule::OperationMarks> marks;
  const Proof proof = algorithm.file != nullptr
                          ? schedule::verify_and_mark(algorithm.file->schedule, marks)
                          : prove(algorithm, shape);
  ++counts_.made;
  if (proof.proven) {
    const std::string packed = schedule::pack(marks);
    cache_.add(key, packed);
    return verdicts_.emplace(key, packed).first->second;
  }
  const Status refused{Code::NotProven, base::format("{} is not proven and will not run: {}",
                                                     algorithm.name, proof.reason)};
  return verdicts_.emplace(key, refused).first->second;
}

ProofCounts Proofs::counts() const {
  const std::lock_guard lock{mutex_};
  return counts_;
}

}  // namespace sluice::engine
