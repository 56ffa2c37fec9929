// processes.h - runs the ranks of a test as forked processes, and collects what they return.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "base/format.h"
#include "transport/memory/memory.h"

namespace sluice::transport::testing_processes {

inline std::string unique_job() {
  return base::format("test-{}-{}", getpid(),
                      testing::UnitTest::GetInstance()->current_test_info()->name());
}

inline ShmOptions as(Rank rank, int ranks, const std::string& job,
                     std::chrono::milliseconds deadline = std::chrono::seconds{30}) {
  return {.rank = rank,
          .ranks = ranks,
          .job = job,
          .token = "secret",
          .deadline = Clock::now() + deadline};
}

inline constexpr unsigned kDeadlineSeconds = 60;  // after them SIGALRM kills a rank

struct Process {
  pid_t pid = 0;
  int pipe = -1;
};

// The body returns "" or a description of the error.
inline Process start(const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), 0) != 0) std::terminate();
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    alarm(kDeadlineSeconds);
    std::string result;
    try {
      result = body();
    } catch (const std::exception& error) {
      result = error.what();
    }
    (void)!write(ends[1], result.data(), result.size());
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

// The result of the body, and the signal if one ended the process.
inline std::string finish(const Process& process) {
  std::string result;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(process.pipe, part.data(), part.size())) > 0;) {
    result.append(part.data(), static_cast<std::size_t>(n));
  }
  close(process.pipe);
  int status = 0;
  waitpid(process.pid, &status, 0);
  if (WIFSIGNALED(status)) result += "killed by signal " + std::to_string(WTERMSIG(status));
  return result;
}

inline std::vector<std::string> run_ranks(int ranks, const std::function<std::string(int)>& body) {
  std::vector<Process> processes;
  for (int rank = 0; rank < ranks; ++rank)
    processes.push_back(start([&, rank] { return body(rank); }));
  std::vector<std::string> results;
  for (const Process& process : processes) results.push_back(finish(process));
  return results;
}

}  // namespace sluice::transport::testing_processes
