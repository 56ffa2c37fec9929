#include "bootstrap/placement.h"

#include <algorithm>
#include <fstream>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bootstrap {
namespace {

constexpr int kMostRanks = 1 << 20;

// A launcher's four variables (the local ones may be missing), whether it started this process, and
// its name of the job.
struct Launcher {
  std::string_view name;
  const Variable& rank;
  const Variable& ranks;
  const Variable& local_rank;
  const Variable& local_ranks;
  bool (*started_this)(const Environment&);
  std::string (*job)(const Environment&);
};

std::string or_empty(const Environment& environment, const Variable& variable) {
  return environment.text(variable).value_or("");
}

std::string no_job(const Environment& /*environment*/) { return ""; }

std::string pmix_job(const Environment& environment) {
  return or_empty(environment, variable::kPmixNamespace);
}

// MPICH's mpirun sets no variable for the job, but one of its processes starts all ranks of a node.
std::string pmi_job(const Environment& environment) {
  return environment.parent() > 0 ? base::format("mpich-{}", environment.parent()) : "";
}

std::string slurm_job(const Environment& environment) {
  return base::format("slurm-{}.{}", or_empty(environment, variable::kSlurmJob),
                      or_empty(environment, variable::kSlurmStep));
}

// The run id is "none" unless the user gave one, so the master's address distinguishes runs.
std::string torch_job(const Environment& environment) {
  const auto run = environment.text(variable::kTorchRun);
  const auto port = environment.text(variable::kMasterPort);
  if (!run && !port) return "";
  return base::format("torch-{}-{}:{}-{}", run.value_or("none"),
                      or_empty(environment, variable::kMasterAddress), port.value_or(""),
                      environment.text(variable::kTorchRestarts).value_or("0"));
}

bool started_by_sluice(const Environment& environment) {
  return environment.has(variable::kRank) || environment.has(variable::kRanks);
}
bool started_by_torchrun(const Environment& environment) {
  return environment.has(variable::kTorchRun);
}
bool started_by_open_mpi(const Environment& environment) {
  return environment.has(variable::kOmpiRank);
}

// SLURM_PROCID is also set for a batch script, which is one process for any number of tasks.
bool started_by_srun(const Environment& environment) {
  return environment.has(variable::kSlurmProcId) && environment.has(variable::kSlurmStep);
}
const Variable& slurm_ranks(const Environment& environment) {
  return environment.has(variable::kSlurmStepTasks) ? variable::kSlurmStepTasks
                                                    : variable::kSlurmTasks;
}
// srun --mpi=pmi2 sets the variables of both. Their numbers agree, and Slurm has more variables.
bool started_by_mpich(const Environment& environment) {
  if (!environment.has(variable::kPmiRank)) return false;
  const bool as_slurm =
      environment.text(variable::kPmiRank) == environment.text(variable::kSlurmProcId) &&
      environment.text(variable::kPmiSize) == environment.text(slurm_ranks(environment));
  return !(started_by_srun(environment) && as_slurm && !environment.has(variable::kMpiLocalRank));
}
bool started_by_hand(const Environment& environment) {
  return environment.has(variable::kTorchRank) && environment.has(variable::kTorchSize);
}

const Launcher kLaunchers[] = {
    {"sluice launch", variable::kRank, variable::kRanks, variable::kLocalRank,
     variable::kLocalRanks, started_by_sluice, no_job},
    {"torchrun", variable::kTorchRank, variable::kTorchSize, variable::kTorchLocalRank,
     variable::kTorchLocalSize, started_by_torchrun, torch_job},
    {"Open MPI", variable::kOmpiRank, variable::kOmpiSize, variable::kOmpiLocalRank,
     variable::kOmpiLocalSize, started_by_open_mpi, pmix_job},
    {"MPICH", variable::kPmiRank, variable::kPmiSize, variable::kMpiLocalRank,
     variable::kMpiLocalSize, started_by_mpich, pmi_job},
    {"Slurm", variable::kSlurmProcId, variable::kSlurmTasks, variable::kSlurmLocalId,
     variable::kSlurmTasksPerNode, started_by_srun, slurm_job},
    {"RANK and WORLD_SIZE", variable::kTorchRank, variable::kTorchSize, variable::kTorchLocalRank,
     variable::kTorchLocalSize, started_by_hand, torch_job},
};

constexpr int kMostPort = 65535;

class Reader {
 public:
  Reader(const Environment& environment, const Launcher& launcher)
      : environment_{environment}, launcher_{launcher} {}

  Result<Placement> read() {
    Placement placement{.launcher = launcher_.name};
    const bool slurm = &launcher_.ranks == &variable::kSlurmTasks;
    placement.ranks =
        number(slurm ? slurm_ranks(environment_) : launcher_.ranks, 1, kMostRanks, std::nullopt);
    placement.rank = number(launcher_.rank, 0, placement.ranks - 1, std::nullopt);
    read_local(placement);
    read_master(placement);
    if (!status_.ok()) return status_;
    placement.job = environment_.text(variable::kJob).value_or(launcher_.job(environment_));
    const auto token = given_token(environment_);
    if (!token.ok()) return token.status();
    placement.token_given = token.value().has_value();
    placement.token = token.value().value_or(placement.job);
    if (placement.job.empty() && placement.ranks > 1) {
      return Status{
          Code::InvalidInput,
          base::format("rank {} of {}, started by {}, has no job name: set SLUICE_JOB to a name "
                       "that all ranks of this job have and no other job has",
                       placement.rank, placement.ranks, launcher_.name)};
    }
    return placement;
  }

 private:
  void read_local(Placement& placement) {
    // If the launcher does not mention other nodes, all ranks are on this one.
    const int all = placement.ranks;
    placement.local_known = environment_.has(launcher_.local_ranks);
    if (&launcher_.local_ranks == &variable::kSlurmTasksPerNode) {
      placement.local_ranks = slurm_local_ranks(all);
    } else {
      placement.local_ranks = number(launcher_.local_ranks, 1, all, all);
    }
    const bool alone_here = placement.local_ranks == all;
    placement.local_rank = number(launcher_.local_rank, 0, placement.local_ranks - 1,
                                  alone_here ? std::optional{placement.rank} : std::nullopt);
  }

  void read_master(Placement& placement) {
    placement.master = or_empty(environment_, variable::kMasterAddress);
    if (placement.master.empty() && &launcher_.rank == &variable::kSlurmProcId) {
      // By default srun puts task 0 on the first node.
      placement.master =
          first_slurm_node(environment_.text(variable::kSlurmStepNodes)
                               .value_or(or_empty(environment_, variable::kSlurmJobNodes)));
    }
    // Torch uses MASTER_PORT itself, or the program that set it does.
    if (environment_.has(variable::kPort)) {
      placement.port = port(variable::kPort);
    } else if (environment_.has(variable::kMasterPort)) {
      const std::uint16_t used = port(variable::kMasterPort);
      placement.port = static_cast<std::uint16_t>(used < kMostPort ? used + 1 : used - 1);
    }
    placement.interface = or_empty(environment_, variable::kInterface);
  }

  std::uint16_t port(const Variable& variable) {
    return static_cast<std::uint16_t>(number(variable, 1, kMostPort, std::nullopt));
  }

  int slurm_local_ranks(int all) {
    const auto list = environment_.text(variable::kSlurmTasksPerNode);
    if (!list) return all;
    const int node = number(variable::kSlurmNodeId, 0, kMostRanks, 0);
    const auto ranks = nth_slurm_count(*list, node, kMostRanks);
    if (!ranks && status_.ok()) {
      status_ =
          Status{Code::InvalidInput,
                 base::format("SLURM_STEP_TASKS_PER_NODE is {}, which has no entry for node {}",
                              base::quote(*list), node)};
    }
    return static_cast<int>(ranks.value_or(1));
  }

  int number(const Variable& variable, int least, int most, std::optional<int> fallback) {
    if (!status_.ok()) return least;
    const auto text = environment_.text(variable);
    if (!text && fallback) return *fallback;
    if (!text) {
      status_ = Status{Code::InvalidInput,
                       base::format("{} is not set, but {} seems to have started this process",
                                    variable.name, launcher_.name)};
      return least;
    }
    const auto value = base::parse_integer(*text, least, most, variable.name);
    if (!value.ok()) status_ = Status{Code::InvalidInput, value.status().message()};
    return value.ok() ? static_cast<int>(value.value()) : least;
  }

  const Environment& environment_;
  const Launcher& launcher_;
  Status status_;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

Result<std::string> read_token_file(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  const std::string_view token = trimmed(line);
  if (token.empty()) {
    return Status{Code::InvalidInput, base::format("the token file {} {}", base::quote(path),
                                                   file.is_open() ? "has no token in its first line"
                                                                  : "cannot be read")};
  }
  return std::string{token};
}

Result<std::optional<std::string>> given_token(const Environment& environment) {
  auto token = environment.text(variable::kToken);
  const auto file = environment.text(variable::kTokenFile);
  if (token || !file) return token;
  auto read = read_token_file(*file);
  if (!read.ok()) return read.status();
  return std::optional{std::move(read).value()};
}

std::optional<std::int64_t> nth_slurm_count(std::string_view list, std::int64_t n,
                                            std::int64_t most) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    const std::size_t times_at = item.find("(x");
    const auto number = base::parse_integer(item.substr(0, times_at), 1, most, "ranks");
    if (!number.ok()) return std::nullopt;
    std::int64_t times = 1;
    if (times_at != std::string_view::npos) {
      if (!item.ends_with(')')) return std::nullopt;
      const auto repeat = base::parse_integer(item.substr(times_at + 2, item.size() - times_at - 3),
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

// A name may have several brackets, and text after them: "rack[1-2]n[01-04]-ib".
std::string first_slurm_node(std::string_view list) {
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

Result<Placement> placement_of(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.started_this(environment)) return Reader{environment, launcher}.read();
  }
  return Placement{};
}

}  // namespace sluice::bootstrap
