#include "base/file.h"

#include <ftw.h>

#include <cstdio>

namespace sluice::base {

void remove_folder(const std::filesystem::path& folder) {
  constexpr int kOpenFolders = 16;
  const auto remove_one = [](const char* path, const struct stat* /*found*/, int /*kind*/,
                             struct FTW* /*where*/) {
    (void)std::remove(path);
    return 0;
  };
  (void)nftw(folder.c_str(), remove_one, kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

}  // namespace sluice::base
