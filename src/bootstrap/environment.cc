#include "bootstrap/environment.h"

#include <unistd.h>

#include <cstdlib>

namespace sluice::bootstrap {
namespace {

using namespace variable;  // NOLINT: the array below lists them all
constexpr Variable kVariables[] = {
    kRank,
    kRanks,
    kLocalRank,
    kLocalRanks,
    kJob,
    kToken,
    kRestarts,
    kStarted,
    kMasterAddress,
    kMasterPort,
    kPort,
    kTokenFile,
    kInterface,
    kTransport,
    kSpin,
    kNode,
    kTopology,
    kLog,
    kAlgorithm,
    kCache,
    kCacheHome,
    kHome,
    kOmpiRank,
    kOmpiSize,
    kOmpiLocalRank,
    kOmpiLocalSize,
    kPmixNamespace,
    kPmiRank,
    kPmiSize,
    kMpiLocalRank,
    kMpiLocalSize,
    kSlurmProcId,
    kSlurmStepTasks,
    kSlurmTasks,
    kSlurmLocalId,
    kSlurmNodeId,
    kSlurmTasksPerNode,
    kSlurmJob,
    kSlurmStepNodes,
    kSlurmJobNodes,
    kSlurmStep,
    kTorchRank,
    kTorchSize,
    kTorchLocalRank,
    kTorchLocalSize,
    kTorchRun,
    kTorchRestarts,
    kPath,
    kThreads,
    kNoColour,
    kTerminal,
    kLauncher,
};

}  // namespace

std::span<const Variable> variables() { return kVariables; }

Environment Environment::of_process() {
  std::map<std::string, std::string, std::less<>> values;
  for (const Variable& variable : kVariables) {
    const std::string name{variable.name};
    if (const char* const value = std::getenv(name.c_str()); value != nullptr)
      values[name] = value;  // NOLINT: mt-unsafe
  }
  return Environment{std::move(values), getppid()};
}

std::optional<std::string> Environment::text(const Variable& variable) const {
  const auto found = values_.find(variable.name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

}  // namespace sluice::bootstrap
