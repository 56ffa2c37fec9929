#include "tests/box/box_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "base/file.h"
#include "base/format.h"

namespace sluice::box {
namespace {

struct Pipe {
  base::Fd from;
  base::Fd to;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error{"no pipe"};
    from.reset(ends[0]);
    to.reset(ends[1]);
  }
};

void set(const std::string& name, const std::string& value) {
  setenv(name.c_str(), value.c_str(), 1);
}

void prepare(const ClusterBox& cluster, const BoxJob& job, std::size_t rank, int number) {
  const auto here = [&](std::size_t ranks) {
    return std::count(job.hosts.begin(), job.hosts.begin() + static_cast<std::ptrdiff_t>(ranks),
                      job.hosts[rank]);
  };
  set("SLUICE_RANK", std::to_string(rank));
  set("SLUICE_RANKS", std::to_string(job.hosts.size()));
  set("SLUICE_LOCAL_RANK", std::to_string(here(rank)));
  set("SLUICE_LOCAL_RANKS", std::to_string(here(job.hosts.size())));
  set("SLUICE_JOB", base::format("box-{}-{}", getppid(), number));
  set("SLUICE_TOKEN", "box");
  set("MASTER_ADDR", cluster.address(job.hosts[0]));
  set("SLUICE_PORT", std::to_string(22'000 + number));
  for (const auto& [name, value] : job.environment) set(name, value);
}

}  // namespace

void Gate::pass() const {
  char byte = 0;
  if (write(arrived_, &byte, 1) != 1 || read(go_, &byte, 1) != 1)
    throw std::runtime_error{"the gate is closed"};
}

std::string run_job(const ClusterBox& cluster, const BoxJob& job) {
  static std::atomic<int> jobs{0};
  const int number = jobs++;
  Pipe arrived;
  Pipe go;
  Pipe errors;
  std::vector<pid_t> children;
  for (std::size_t rank = 0; rank < job.hosts.size(); ++rank) {
    children.push_back(cluster.start(job.hosts[rank], [&] {
      alarm(static_cast<unsigned>(job.deadline.count()));
      prepare(cluster, job, rank, number);
      go.to.reset();
      std::string error_text;
      try {
        Communicator comm = Communicator::from_env();
        comm.set_deadline(job.deadline);
        error_text = job.body(comm, Gate{arrived.to.number(), go.from.number()});
      } catch (const std::exception& error) {
        error_text = error.what();
      }
      if (!error_text.empty()) {
        error_text = base::format("rank {}: {}\n", rank, error_text);
        (void)!write(errors.to.number(), error_text.data(), error_text.size());
      }
      return error_text.empty() ? 0 : 1;
    }));
  }
  arrived.to.reset();
  errors.to.reset();
  std::size_t waiting = 0;
  int gate = 0;
  for (char byte = 0; read(arrived.from.number(), &byte, 1) == 1;) {
    if (++waiting < children.size()) continue;
    waiting = 0;
    job.at_gate(gate++);
    const std::string all(children.size(), 'g');
    (void)!write(go.to.number(), all.data(), all.size());
  }
  std::string all_errors;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(errors.from.number(), part.data(), part.size())) > 0;)
    all_errors.append(part.data(), static_cast<std::size_t>(n));
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    waitpid(children[rank], &status, 0);
    if (WIFSIGNALED(status))
      all_errors += base::format("rank {} was killed by signal {}\n", rank, WTERMSIG(status));
  }
  return all_errors;
}

}  // namespace sluice::box
