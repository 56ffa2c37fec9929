// environment.h - all environment variables that Sluice reads, and the only way to read them.
//
// A variable is an object, so a variable that is not declared here cannot be read. An Environment
// is a copy: later changes of the process' environment have no effect, and tests make their own
// copy.
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
  std::string_view fallback;  // the value or meaning when it is not set
};

namespace variable {

// Set by `sluice launch` for the ranks it starts. A user may set them by hand too.
inline constexpr Variable kRank{"SLUICE_RANK", "this process' rank, from 0",
                                "that of another launcher"};
inline constexpr Variable kRanks{"SLUICE_RANKS", "how many ranks there are",
                                 "that of another launcher"};
inline constexpr Variable kLocalRank{"SLUICE_LOCAL_RANK", "the rank among those of this node",
                                     "SLUICE_RANK"};
inline constexpr Variable kLocalRanks{"SLUICE_LOCAL_RANKS", "how many ranks this node has",
                                      "SLUICE_RANKS"};
inline constexpr Variable kJob{
    "SLUICE_JOB", "the name by which the ranks of a job find each other; overrides any launcher's",
    "the launcher's job"};
inline constexpr Variable kToken{"SLUICE_TOKEN", "a secret of the ranks of a job", "the job"};
inline constexpr Variable kRestarts{"SLUICE_RESTARTS", "how many times all ranks were restarted",
                                    "TORCHELASTIC_RESTART_COUNT, else 0"};
inline constexpr Variable kStarted{"SLUICE_STARTED",
                                   "when the job first began, in nanoseconds since 1970",
                                   "when the process began"};

inline constexpr Variable kLauncher{
    "SLUICE_LAUNCHER", "the pipe by which a rank tells `sluice launch` which rank made it fail",
    "none"};

// Set by the user, and by `sluice launch` for ranks on several hosts.
inline constexpr Variable kMasterAddress{"MASTER_ADDR", "the address of rank 0's node",
                                         "Slurm's first node"};
inline constexpr Variable kMasterPort{
    "MASTER_PORT", "a port on rank 0's node that torchrun uses; Sluice takes the next one", ""};
inline constexpr Variable kPort{"SLUICE_PORT",
                                "the port of the rendezvous of ranks on several nodes",
                                "MASTER_PORT + 1, else 29501"};
inline constexpr Variable kTokenFile{"SLUICE_TOKEN_FILE",
                                     "a file whose first line is the token, where SLUICE_TOKEN is "
                                     "not set",
                                     "no file"};
inline constexpr Variable kInterface{
    "SLUICE_INTERFACE", "the network interface by which other nodes reach this one: eth0, 10.0.0.1",
    "the one that leads to MASTER_ADDR"};
inline constexpr Variable kTransport{"SLUICE_TRANSPORT",
                                     "the network between nodes: tcp, mpi or auto", "auto"};
inline constexpr Variable kSpin{
    "SLUICE_SPIN",
    "whether a rank that waits for other nodes over tcp looks for messages for a moment before it "
    "sleeps, where that pays: on or off",
    "on"};
inline constexpr Variable kNode{"SLUICE_NODE",
                                "the node that this rank counts as; ranks of one node share memory",
                                "its machine"};
inline constexpr Variable kTopology{"SLUICE_TOPOLOGY", "a cluster file that describes the network",
                                    "measured constants"};
inline constexpr Variable kLog{
    "SLUICE_LOG",
    "the lowest level that is logged: info, warning or off; `sluice launch` sets info", "warning"};

// Set by the user.
inline constexpr Variable kAlgorithm{
    "SLUICE_ALGORITHM",
    "the algorithm, or one for each range of bytes: ring, or exchange@-4K,ring@4K-1M,direct@1M-",
    "the cheapest"};
inline constexpr Variable kCache{
    "SLUICE_CACHE", "the folder where measured constants and verdicts on schedules are kept",
    "XDG_CACHE_HOME/sluice"};
inline constexpr Variable kCacheHome{"XDG_CACHE_HOME", "the folder of all caches", "HOME/.cache"};
inline constexpr Variable kHome{"HOME", "the user's folder", "no cache"};

inline constexpr Variable kNoColour{"NO_COLOR", "no colours in the output",
                                    "colours on a terminal"};
inline constexpr Variable kTerminal{"TERM", "the type of the terminal; dumb: no progress bar", ""};

// Set by Open MPI's mpirun.
inline constexpr Variable kOmpiRank{"OMPI_COMM_WORLD_RANK", "Open MPI: the rank", ""};
inline constexpr Variable kOmpiSize{"OMPI_COMM_WORLD_SIZE", "Open MPI: how many ranks", ""};
inline constexpr Variable kOmpiLocalRank{"OMPI_COMM_WORLD_LOCAL_RANK",
                                         "Open MPI: the rank on this node", ""};
inline constexpr Variable kOmpiLocalSize{"OMPI_COMM_WORLD_LOCAL_SIZE",
                                         "Open MPI: how many ranks on this node", ""};
inline constexpr Variable kPmixNamespace{"PMIX_NAMESPACE",
                                         "Open MPI and other PMIx launchers: the job", ""};

// Set by MPICH's mpirun and other Hydra launchers.
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
inline constexpr Variable kSlurmNodeId{"SLURM_NODEID", "Slurm: the number of this node in the job",
                                       ""};
inline constexpr Variable kSlurmTasksPerNode{"SLURM_STEP_TASKS_PER_NODE",
                                             "Slurm: ranks of each node, as 4(x2),3", ""};
inline constexpr Variable kSlurmJob{"SLURM_JOB_ID", "Slurm: the job", ""};
inline constexpr Variable kSlurmStepNodes{
    "SLURM_STEP_NODELIST", "Slurm: the step's nodes, as node[03-07,9],x", "SLURM_JOB_NODELIST"};
inline constexpr Variable kSlurmJobNodes{"SLURM_JOB_NODELIST", "Slurm: the job's nodes", ""};
inline constexpr Variable kSlurmStep{
    "SLURM_STEP_ID", "Slurm: the step; not set unless srun started this process", ""};

// Set by torchrun; the first two are also set by hand and by cluster operators.
inline constexpr Variable kTorchRank{"RANK", "torchrun: the rank", ""};
inline constexpr Variable kTorchSize{"WORLD_SIZE", "torchrun: how many ranks", ""};
inline constexpr Variable kTorchLocalRank{"LOCAL_RANK", "torchrun: the rank on this node", ""};
inline constexpr Variable kTorchLocalSize{"LOCAL_WORLD_SIZE",
                                          "torchrun: how many ranks on this node", ""};
inline constexpr Variable kTorchRun{"TORCHELASTIC_RUN_ID", "torchrun: the job", ""};
inline constexpr Variable kTorchRestarts{"TORCHELASTIC_RESTART_COUNT",
                                         "torchrun: how many times it was restarted", ""};

// Read and set by `sluice launch`.
inline constexpr Variable kPath{"PATH", "the folders where `sluice launch` looks for the program",
                                "/usr/local/bin:/usr/bin:/bin"};
inline constexpr Variable kThreads{
    "OMP_NUM_THREADS", "the number of compute threads of a rank; `sluice launch` sets it",
    "a rank's share of the cores"};

}  // namespace variable

// The variables that of_process() reads.
std::span<const Variable> variables();

class Environment {
 public:
  explicit Environment(std::map<std::string, std::string, std::less<>> values, int parent = 0)
      : values_{std::move(values)}, parent_{parent} {}
  static Environment of_process();

  // An empty variable counts as not set.
  std::optional<std::string> text(const Variable& variable) const;
  bool has(const Variable& variable) const { return text(variable).has_value(); }

  // The parent process: one launcher starts all ranks of a node.
  int parent() const { return parent_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  int parent_;
};

}  // namespace sluice::bootstrap
