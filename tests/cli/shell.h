// shell.h - runs the built command as a user does, in a shell line.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Runs a shell line; SLUICE stands for the command. Every run has a deadline of its own.
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
  const std::string command =
      "timeout " + std::to_string(deadline_s) + " bash " + script + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());  // NOLINT: the tests' own lines
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_all(out), read_all(err)};
  for (const std::string& file : {out, err, script}) std::remove(file.c_str());
  return outcome;
}

class TrainingPlace {
 public:
  TrainingPlace()
      : folder_{std::filesystem::path{testing::TempDir()} /
                (std::string{testing::UnitTest::GetInstance()->current_test_info()->name()} + "." +
                 std::to_string(getpid()) + ".d")} {
    std::filesystem::create_directories(folder_);
  }
  ~TrainingPlace() { std::filesystem::remove_all(folder_); }
  TrainingPlace(const TrainingPlace&) = delete;
  TrainingPlace& operator=(const TrainingPlace&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

  // `sluice train ARGUMENTS` in there.
  Outcome train(const std::string& arguments, int deadline_s = 60) const {
    return shell(in("SLUICE train " + arguments), deadline_s);
  }
  // With a thread a rank: the same sums however many cores there are.
  std::string in(const std::string& line) const {
    return "export OMP_NUM_THREADS=1; cd " + folder_.string() + "; " + line;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace sluice::cli
