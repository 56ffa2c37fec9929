// environment.h - every environment variable that Sluice reads, and the one way to read them.
//
// A variable is an object: what is not declared here cannot be read. Values are taken once, so
// tests make an Environment of their own, and nothing depends on when the process' own one changes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::bootstrap {

struct Variable {
  std::string_view name;
  std::string_view meaning;
  std::string_view fallback;  // what holds when it is not set
};

namespace variable {

// Set by `sluice launch` for the ranks it starts. By hand they work as well.
inline constexpr Variable kRank{"SLUICE_RANK", "this process' rank, from 0",
                                "that of another launcher"};
inline constexpr Variable kRanks{"SLUICE_RANKS", "how many ranks there are",
                                 "that of another launcher"};
inline constexpr Variable kLocalRank{"SLUICE_LOCAL_RANK", "the rank among those of this node",
                                     "SLUICE_RANK"};
inline constexpr Variable kLocalRanks{"SLUICE_LOCAL_RANKS", "how many ranks this node has",
                                      "SLUICE_RANKS"};
inline constexpr Variable kJob{
    "SLUICE_JOB", "what the ranks of a job find each other by; overrides any launcher's",
    "the launcher's job"};
inline constexpr Variable kToken{"SLUICE_TOKEN", "what only the ranks of a job know", "the job"};
inline constexpr Variable kRestarts{"SLUICE_RESTARTS", "how often all ranks were started again",
                                    "TORCHELASTIC_RESTART_COUNT, else 0"};
inline constexpr Variable kStarted{"SLUICE_STARTED",
                                   "when the job first began, in nanoseconds since 1970",
                                   "when the process began"};

// Set by the user, and by `sluice launch` for ranks on several hosts.
inline constexpr Variable kMasterAddress{"MASTER_ADDR", "where rank 0's node is",
                                         "Slurm's first node"};
inline constexpr Variable kMasterPort{
    "MASTER_PORT", "a port of rank 0's node that torchrun uses; Sluice takes the next one", ""};
inline constexpr Variable kPort{"SLUICE_PORT", "the port where ranks of several nodes meet",
                                "MASTER_PORT + 1, else 29501"};
inline constexpr Variable kTokenFile{"SLUICE_TOKEN_FILE",
                                     "a file whose first line is the token, where SLUICE_TOKEN is "
                                     "not set",
                                     "no file"};
inline constexpr Variable kInterface{
    "SLUICE_INTERFACE", "the network interface that other nodes reach this one by: eth0, 10.0.0.1",
    "the one that leads to MASTER_ADDR"};
inline constexpr Variable kTransport{"SLUICE_TRANSPORT",
                                     "what carries data between nodes: tcp, mpi or auto", "auto"};
inline constexpr Variable kNode{
    "SLUICE_NODE", "which node this rank counts as: ranks of one share memory", "its machine"};
inline constexpr Variable kTopology{"SLUICE_TOPOLOGY", "a cluster file that describes the network",
                                    "what is measured"};
inline constexpr Variable kLog{
    "SLUICE_LOG", "what is logged: info, warning or off; `sluice launch` sets info", "warning"};

// Set by the user.
inline constexpr Variable kAlgorithm{
    "SLUICE_ALGORITHM",
    "which algorithm for which bytes: ring, or exchange@-4K,ring@4K-1M,direct@1M-", "the cheapest"};
inline constexpr Variable kCache{"SLUICE_CACHE", "the folder where measured constants are kept",
                                 "XDG_CACHE_HOME/sluice"};
inline constexpr Variable kCacheHome{"XDG_CACHE_HOME", "the folder of all caches", "HOME/.cache"};
inline constexpr Variable kHome{"HOME", "the user's folder", "nothing is kept"};

inline constexpr Variable kNoColour{"NO_COLOR", "output without colours", "colours on a terminal"};
inline constexpr Variable kTerminal{"TERM", "what the terminal can; dumb: no bar is drawn", ""};

// Set by Open MPI's mpirun.
inline constexpr Variable kOmpiRank{"OMPI_COMM_WORLD_RANK", "Open MPI: the rank", ""};
inline constexpr Variable kOmpiSize{"OMPI_COMM_WORLD_SIZE", "Open MPI: how many ranks", ""};
inline constexpr Variable kOmpiLocalRank{"OMPI_COMM_WORLD_LOCAL_RANK",
                                         "Open MPI: the rank on this node", ""};
inline constexpr Variable kOmpiLocalSize{"OMPI_COMM_WORLD_LOCAL_SIZE",
                                         "Open MPI: how many ranks on this node", ""};
inline constexpr Variable kPmixNamespace{"PMIX_NAMESPACE",
                                         "Open MPI and other PMIx launchers: the job", ""};

// Set by MPICH's mpirun and its kin (Hydra).
inline constexpr Variable kPmiRank{"PMI_RANK", "MPICH: the rank", ""};
inline constexpr Variable kPmiSize{"PMI_SIZE", "MPICH: how many ranks", ""};
inline constexpr Variable kMpiLocalRank{"MPI_LOCALRANKID", "MPICH: the rank on this node", ""};
inline constexpr Variable kMpiLocalSize{"MPI_LOCALNRANKS", "MPICH: how many ranks on this node",
                                        ""};

// Set by srun.
inline constexpr Variable kSlurmProcId{"SLURM_PROCID", "Slurm: the rank", ""};
inline constexpr Variable kSlurmStepTasks{"SLURM_STEP_NUM_TASKS", "Slurm: how many ranks",
                                          "SLURM_NTASKS"};
inline constexpr Variable kSlurmTasks{"SLURM_NTASKS", "Slurm: how many ranks the job asked for",
                                      ""};
inline constexpr Variable kSlurmLocalId{"SLURM_LOCALID", "Slurm: the rank on this node", ""};
inline constexpr Variable kSlurmNodeId{"SLURM_NODEID", "Slurm: which of the job's nodes this is",
                                       ""};
inline constexpr Variable kSlurmTasksPerNode{"SLURM_STEP_TASKS_PER_NODE",
                                             "Slurm: ranks of each node, as 4(x2),3", ""};
inline constexpr Variable kSlurmJob{"SLURM_JOB_ID", "Slurm: the job", ""};
inline constexpr Variable kSlurmStepNodes{
    "SLURM_STEP_NODELIST", "Slurm: the step's nodes, as node[03-07,9],x", "SLURM_JOB_NODELIST"};
inline constexpr Variable kSlurmJobNodes{"SLURM_JOB_NODELIST", "Slurm: the job's nodes", ""};
inline constexpr Variable kSlurmStep{"SLURM_STEP_ID",
                                     "Slurm: the step; without it, srun did not start this", ""};

// Set by torchrun; the first two also by hand, and by cluster operators.
inline constexpr Variable kTorchRank{"RANK", "torchrun: the rank", ""};
inline constexpr Variable kTorchSize{"WORLD_SIZE", "torchrun: how many ranks", ""};
inline constexpr Variable kTorchLocalRank{"LOCAL_RANK", "torchrun: the rank on this node", ""};
inline constexpr Variable kTorchLocalSize{"LOCAL_WORLD_SIZE",
                                          "torchrun: how many ranks on this node", ""};
inline constexpr Variable kTorchRun{"TORCHELASTIC_RUN_ID", "torchrun: the job", ""};
inline constexpr Variable kTorchRestarts{"TORCHELASTIC_RESTART_COUNT",
                                         "torchrun: how often it was restarted", ""};

// Read and set by `sluice launch`.
inline constexpr Variable kPath{"PATH", "where `sluice launch` looks for the program",
                                "/usr/local/bin:/usr/bin:/bin"};
inline constexpr Variable kThreads{"OMP_NUM_THREADS",
                                   "threads a rank computes with; `sluice launch` sets it",
                                   "a rank's share of the cores"};

}  // namespace variable

// All of the above, in that order.
std::span<const Variable> variables();

class Environment {
 public:
  explicit Environment(std::map<std::string, std::string, std::less<>> values, int parent = 0)
      : values_{std::move(values)}, parent_{parent} {}
  static Environment of_process();

  // A variable that is set to nothing counts as not set.
  std::optional<std::string> text(const Variable& variable) const;
  bool has(const Variable& variable) const { return text(variable).has_value(); }

  // The process that started this one: a launcher starts all ranks of a node.
  int parent() const { return parent_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  int parent_;
};

}  // namespace sluice::bootstrap
