// shell.h - runs the built command in a shell, as a user does, also in a temporary folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sluice::cli {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

inline std::string read_all(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// Runs a shell line, in which SLUICE stands for the command, with a deadline.
inline Outcome shell(std::string line, int deadline_s = 60) {
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string place = testing::TempDir() + test + "." + std::to_string(getpid());
  const std::string out = place + ".out";
  const std::string err = place + ".err";
  const std::string script = place + ".sh";
  const std::string word = "SLUICE";
  for (std::size_t at = 0; (at = line.find(word, at)) != std::string::npos;) {
    const bool variable = line.substr(at + word.size()).starts_with('_');  // SLUICE_RANK
    if (!variable) line.replace(at, word.size(), SLUICE_COMMAND);
    at += variable ? word.size() : std::string{SLUICE_COMMAND}.size();
  }
  std::ofstream{script} << line << "\n";
  const std::string command = "timeout " + std::to_string(deadline_s * SLUICE_SLOWDOWN) + " bash " +
                              script + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());  // NOLINT: the tests' own lines
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(out), read_all(err)};
  for (const std::string& file : {out, err, script}) std::remove(file.c_str());
  return outcome;
}

// The line must exit with 2 and print nothing but one line on standard error that contains
// `sentence`.
inline void expect_refused(const std::string& line, const std::string& sentence) {
  const Outcome outcome = shell(line);
  EXPECT_EQ(outcome.status, 2) << line << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "") << line;
  EXPECT_NE(outcome.err.find(sentence), std::string::npos) << line << "\n" << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
      << "one sentence: " << outcome.err;
}

// A temporary folder for the trainings of a test.
class TrainingFolder {
 public:
  TrainingFolder()
      : path_{std::filesystem::path{testing::TempDir()} /
              (std::string{testing::UnitTest::GetInstance()->current_test_info()->name()} + "." +
               std::to_string(getpid()) + ".d")} {
    std::filesystem::create_directories(path_);
  }
  ~TrainingFolder() { std::filesystem::remove_all(path_); }
  TrainingFolder(const TrainingFolder&) = delete;
  TrainingFolder& operator=(const TrainingFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Runs `sluice train ARGUMENTS` in the folder.
  Outcome train(const std::string& arguments, int deadline_s = 60) const {
    return shell(in("SLUICE train " + arguments), deadline_s);
  }
  // A line that runs in the folder, with one thread per rank: sums do not depend on the cores.
  std::string in(const std::string& line) const {
    return "export OMP_NUM_THREADS=1; cd " + path_.string() + "; " + line;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace sluice::cli
