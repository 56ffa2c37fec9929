// files.h - a test fixture with files in a temporary folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/allreduce/temporary_folder.h"

namespace sluice::data {

class WithFiles : public testing::Test {
 protected:
  void write(const std::filesystem::path& name, const std::string& bytes) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream{root_ / name, std::ios::binary} << bytes;
  }
  std::string read(const std::filesystem::path& name) const {
    std::ifstream file{root_ / name, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  bench::TemporaryFolder folder_;
  std::filesystem::path root_ = folder_.make("data");
};

}  // namespace sluice::data
