// proofs.h - which schedules are proven.
//
// A schedule is proven once: in this process, or by an earlier one of the same build on a machine
// that shares the user's cache folder. The other ranks of a communicator prove nothing: rank 0
// tells them the verdict (verdict_handover.h).
// Thread-safety: any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "bootstrap/environment.h"
#include "engine/proof_cache.h"
#include "sluice/algorithms.h"
#include "sluice/status.h"

namespace sluice::engine {

struct ProofCounts {
  int made = 0;
  int from_cache = 0;  // verdicts that were read from the cache file

  friend bool operator==(const ProofCounts&, const ProofCounts&) = default;
};

// Ok if the schedule is proven. The value is empty, or for a schedule from a file the packed marks
// of its operations (schedule/marks.h).
using Verdict = Result<std::string>;

class Proofs {
 public:
  explicit Proofs(ProofCache cache) : cache_{std::move(cache)} {}
  // Those of this process. Its cache folder is that of the environment at the first call.
  static Proofs& of_process();

  // The verdict if it is known and no proof is under way. Returns at once.
  std::optional<Verdict> known_verdict(const Algorithm& algorithm, const Shape& shape);
  // Proves the schedule if nobody has; large schedules take seconds.
  Verdict verdict_on(const Algorithm& algorithm, const Shape& shape);

  ProofCounts counts() const;

 private:
  // REQUIRES, for this function: mutex_ is held.
  std::optional<Verdict> find(const std::string& key);

  mutable std::mutex mutex_;
  ProofCache cache_;
  std::map<std::string, Verdict> verdicts_;
  ProofCounts counts_;
};

// The file of a build's proofs; empty when there is no cache folder or no build id.
std::filesystem::path proof_cache_path(const bootstrap::Environment& environment,
                                       const std::string& build);

}  // namespace sluice::engine
