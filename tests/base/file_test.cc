#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sluice::base {
namespace {

namespace fs = std::filesystem;

TEST(RemoveFolder, RemovesItsContentsAndFollowsNoLinks) {
  const fs::path folder = fs::path{testing::TempDir()} / ("remove." + std::to_string(getpid()));
  const fs::path removed = folder / "removed";
  fs::create_directories(removed / "a" / "b");
  fs::create_directories(folder / "kept");
  std::ofstream{removed / "a" / "b" / "file"} << "x";
  std::ofstream{folder / "kept" / "file"} << "x";
  fs::create_directory_symlink(folder / "kept", removed / "link");
  remove_folder(removed);
  EXPECT_FALSE(fs::exists(removed));
  EXPECT_TRUE(fs::exists(folder / "kept" / "file"));
  remove_folder(removed);  // it is missing now
  remove_folder(folder);
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace sluice::base
