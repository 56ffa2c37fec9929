#include "cli/train/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct RunFolder : testing::Test {
  RunFolder() : parent{fs::path{testing::TempDir()} / ("run_folder." + std::to_string(getpid()))} {
    fs::create_directories(parent);
  }
  ~RunFolder() override { fs::remove_all(parent); }
  fs::path parent;
};

TEST_F(RunFolder, FreshFolderHasRecipeAndTimeInItsNameAndIsUnique) {
  constexpr std::time_t kNow = 1'700'000'000;
  std::tm local{};
  localtime_r(&kNow, &local);
  char text[32];
  std::strftime(text, sizeof text, "demo-%Y%m%d-%H%M%S", &local);
  const fs::path first = fresh_run_folder(parent, "demo", kNow).value();
  EXPECT_EQ(first, parent / "runs" / text);
  EXPECT_TRUE(fs::is_directory(first));
  EXPECT_EQ(fresh_run_folder(parent, "demo", kNow).value(), first.string() + "-2");
  EXPECT_EQ(fresh_run_folder(parent, "/a/mine.toml", kNow).value().filename().string().substr(0, 5),
            "mine-");
}

TEST_F(RunFolder, FolderThatCannotBeMadeIsAnError) {
  std::ofstream{parent / "runs"} << "a file";
  const auto folder = fresh_run_folder(parent, "demo", 0);
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.status().message().find("give one with --run"), std::string::npos);
}

TEST_F(RunFolder, NeverOverwritesARun) {
  EXPECT_TRUE(check_run_folder(parent / "new", false).ok());
  EXPECT_TRUE(check_run_folder(parent, false).ok()) << "it is empty";
  EXPECT_FALSE(check_run_folder(parent, true).ok()) << "there is nothing to resume";
  for (const char* const name : {"run.json", "metrics.jsonl", "checkpoints"}) {
    const fs::path folder = parent / (std::string{"with-"} + name);
    fs::create_directories(folder);
    std::ofstream{folder / name} << "{}";
    const Status status = check_run_folder(folder, false);
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_NE(status.message().find("--resume"), std::string::npos) << status.message();
    EXPECT_TRUE(check_run_folder(folder, true).ok()) << name;
  }
  std::ofstream{parent / "file"} << "x";
  EXPECT_NE(check_run_folder(parent / "file", false).message().find("not a folder"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
