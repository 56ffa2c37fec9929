#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"

namespace sluice::base {
namespace {

namespace fs = std::filesystem;

TEST(RemoveFolder, TakesWhatIsInItAndNoMore) {
  const fs::path place = fs::path{testing::TempDir()} / ("remove." + std::to_string(getpid()));
  const fs::path doomed = place / "doomed";
  fs::create_directories(doomed / "a" / "b");
  fs::create_directories(place / "kept");
  std::ofstream{doomed / "a" / "b" / "file"} << "x";
  std::ofstream{place / "kept" / "file"} << "x";
  fs::create_directory_symlink(place / "kept", doomed / "link");
  remove_folder(doomed);
  EXPECT_FALSE(fs::exists(doomed));
  EXPECT_TRUE(fs::exists(place / "kept" / "file"));
  remove_folder(doomed);  // is not there any more
  remove_folder(place);
  EXPECT_FALSE(fs::exists(place));
}

}  // namespace
}  // namespace sluice::base
