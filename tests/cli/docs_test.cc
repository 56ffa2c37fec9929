// Every `$ sluice ...` in a fenced block of docs/ prints the output that the document shows.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace sluice::cli {
namespace {

std::string output_of(const std::string& arguments) {
  const std::string line = "timeout 60 " SLUICE_COMMAND " " + arguments;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe{popen(line.c_str(), "r"), pclose};
  std::string output;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe.get())) > 0;)
    output.append(part.data(), n);
  return output;
}

TEST(Docs, CommandsPrintWhatTheyShow) {
  constexpr std::string_view kPrompt = "$ sluice ";
  int shown = 0;
  for (const auto& entry : std::filesystem::directory_iterator{SLUICE_SOURCE_DIR "/docs"}) {
    std::ifstream file{entry.path()};
    std::string line;
    while (std::getline(file, line)) {
      if (!line.starts_with(kPrompt)) continue;
      const std::string arguments = line.substr(kPrompt.size());
      std::string expected;
      while (std::getline(file, line) && !line.starts_with("```")) expected += line + "\n";
      EXPECT_EQ(output_of(arguments), expected) << entry.path() << ": sluice " << arguments;
      ++shown;
    }
  }
  EXPECT_GE(shown, 8) << "at least one drawing per algorithm";
}

}  // namespace
}  // namespace sluice::cli
