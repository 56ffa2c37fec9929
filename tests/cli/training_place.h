// training_place.h - a folder for trainings of a test, gone with it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/cli/shell.h"

namespace sluice::cli {

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
