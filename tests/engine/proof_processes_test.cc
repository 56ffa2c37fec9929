// The ranks of a job as processes: rank 0 proves, the others prove nothing, and the next job with
// the same cache folder proves nothing at all. This is a separate program, because it forks.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "base/format.h"
#include "engine/proofs.h"
#include "sluice/communicator.h"
#include "tests/transport/processes.h"

namespace sluice::engine {
namespace {

using transport::testing_processes::finish;
using transport::testing_processes::Process;
using transport::testing_processes::start;

class ProofProcesses : public testing::Test {
 protected:
  ProofProcesses() { std::filesystem::create_directories(cache_); }
  ~ProofProcesses() override { base::remove_folder(cache_); }

  // Starts a rank of a job, which joins and then runs the body. The result is a description of the
  // error, or "proved M, read C".
  Process start_rank(int rank, int ranks, const std::string& job,
                     const std::function<void(Communicator&)>& body) {
    return start([=, this] {
      const auto set = [](const char* name, const std::string& value) {
        setenv(name, value.c_str(), 1);  // NOLINT: this process has one thread
      };
      set("SLUICE_RANK", std::to_string(rank));
      set("SLUICE_RANKS", std::to_string(ranks));
      set("SLUICE_JOB", base::format("proofs-{}-{}", getppid(), job));
      set("SLUICE_TOKEN", "secret");
      set("SLUICE_CACHE", cache_.string());
      Communicator comm = Communicator::from_env(std::chrono::seconds{30});
      comm.set_deadline(std::chrono::seconds{20});
      body(comm);
      const ProofCounts counts = Proofs::of_process().counts();
      return base::format("proved {}, read {}", counts.made, counts.from_cache);
    });
  }

  std::vector<std::string> run_job(int ranks, const std::string& job) {
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      processes.push_back(start_rank(rank, ranks, job, [](Communicator& comm) {
        std::vector<float> data(10'000, 1);
        for (const char* algorithm : {"ring", "torus", "hierarchical:ring"}) {
          comm.all_reduce(data, {.algorithm = algorithm}).wait();
          comm.all_reduce(data, {.op = ReduceOp::Mean, .algorithm = algorithm}).wait();
        }
        const float n = static_cast<float>(comm.size());
        if (data[0] != n * n * n) throw std::runtime_error{"wrong sum"};
        comm.barrier();
      }));
    }
    std::vector<std::string> results;
    for (const Process& process : processes) results.push_back(finish(process));
    return results;
  }

  // The files of constants. A file that is written again is another file.
  std::map<std::string, ino_t> constants_files() const {
    std::map<std::string, ino_t> files;
    for (const auto& entry : std::filesystem::directory_iterator{cache_}) {
      struct stat file {};
      stat(entry.path().c_str(), &file);
      if (entry.path().extension() == ".toml") files[entry.path().filename()] = file.st_ino;
    }
    return files;
  }

  std::filesystem::path cache_ = std::filesystem::temp_directory_path() /
                                 ("sluice-proof-processes-" + std::to_string(getpid()));
};

TEST_F(ProofProcesses, OnlyRankZeroProvesAndTheNextJobProvesNothing) {
  for (const int ranks : {2, 5}) {
    const std::vector<std::string> first = run_job(ranks, base::format("first{}", ranks));
    const std::vector<std::string> second = run_job(ranks, base::format("second{}", ranks));
    int made = 0;
    ASSERT_EQ(std::sscanf(first[0].c_str(), "proved %d, read 0", &made), 1) << first[0];  // NOLINT
    EXPECT_GE(made, 3);
    int read = 0;
    ASSERT_EQ(std::sscanf(second[0].c_str(), "proved 0, read %d", &read), 1)  // NOLINT
        << second[0];
    EXPECT_GE(read, 3);
    for (int rank = 1; rank < ranks; ++rank) {
      EXPECT_EQ(first[static_cast<std::size_t>(rank)], "proved 0, read 0");
      EXPECT_EQ(second[static_cast<std::size_t>(rank)], "proved 0, read 0");
    }
  }
}

// Any number of ranks above 8 uses what 8 have measured, and only a measurement writes the file.
TEST_F(ProofProcesses, TheNextJobMeasuresNothing) {
  (void)run_job(9, "measures");
  const std::map<std::string, ino_t> before = constants_files();
  if (before.empty()) GTEST_SKIP() << "the machine is too busy to measure";
  EXPECT_EQ(before.size(), 1U);
  EXPECT_TRUE(before.begin()->first.ends_with("-8-ranks.toml")) << before.begin()->first;
  (void)run_job(11, "measures nothing");
  EXPECT_EQ(constants_files(), before);
}

// A proof that never ends.
Program never_built(const Shape& /*shape*/, Rank /*rank*/) {
  std::promise<void>{}.get_future().wait();
  return Program{Chunking{1}};
}

TEST_F(ProofProcesses, ARankZeroThatDiesWhileItProvesIsTheCulprit) {
  constexpr int kRanks = 3;
  const auto body = [](Communicator& comm) {
    comm.barrier();
    comm.set_deadline(std::chrono::seconds{1});
    if (comm.rank() == 0) {
      // Another thread holds the proofs, so this rank appears to prove until it is killed.
      std::thread{[] {
        Algorithm endless = *find_algorithm("ring").value();
        endless.name = "a ring without an end";
        endless.program = never_built;
        (void)Proofs::of_process().verdict_on(endless, {.ranks = 2});
      }}.detach();
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      std::thread{[] {
        std::this_thread::sleep_for(std::chrono::milliseconds{2500});
        (void)raise(SIGKILL);
      }}.detach();
    }
    std::vector<float> data(100, 1);
    comm.all_reduce(data, {.algorithm = "hierarchical:torus"}).wait();
  };
  std::vector<Process> processes;
  const auto begin = std::chrono::steady_clock::now();
  for (int rank = 0; rank < kRanks; ++rank)
    processes.push_back(start_rank(rank, kRanks, "dies", body));
  const std::string killed = finish(processes[0]);
  EXPECT_EQ(killed, "killed by signal 9");
  for (int rank = 1; rank < kRanks; ++rank) {
    const std::string error = finish(processes[static_cast<std::size_t>(rank)]);
    EXPECT_NE(error.find("rank 0 is lost"), std::string::npos) << error;
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(took, std::chrono::milliseconds{2500})
      << "not before it died, in spite of the deadline";
}

}  // namespace
}  // namespace sluice::engine
