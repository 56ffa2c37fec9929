// temporary_folder.h - a folder that is removed by its owner, with all that is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/format.h"
#include "sluice/status.h"

namespace sluice::bench {

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_{(std::filesystem::temp_directory_path() / "sluice-bench.XXXXXX").string()} {
    if (mkdtemp(path_.data()) == nullptr)
      throw Error{Status{Code::InvalidInput, base::format("{} cannot be made", path_)}};
  }
  ~TemporaryFolder() { base::remove_folder(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path path() const { return path_; }
  // Makes a folder of that name in it and returns its path.
  std::string make(const std::string& name) const {
    const std::filesystem::path folder = std::filesystem::path{path_} / name;
    std::filesystem::create_directory(folder);
    return folder.string();
  }

 private:
  std::string path_;
};

}  // namespace sluice::bench
