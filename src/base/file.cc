#include "base/file.h"

#include <atomic>
#include <fstream>
#include <system_error>

#include "base/format.h"

namespace sluice::base {

void try_replace_file(const std::filesystem::path& path, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  static std::atomic<int> writers{0};  // two threads may write the same file
  const std::filesystem::path written =
      path.string() + format(".{}.{}", getpid(), writers.fetch_add(1));
  std::ofstream file{written};
  file << text;
  file.close();
  if (file) {
    std::filesystem::rename(written, path, failed);
  } else {
    std::filesystem::remove(written, failed);
  }
}

}  // namespace sluice::base
