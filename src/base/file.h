// file.h - file descriptors, folders, and the files that are compiled into the library.
#pragma once

#include <ftw.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::base {

// Owns a file descriptor and closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_{fd} {}
  Fd(Fd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int number() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// Removes a folder and its contents as far as possible. Ignores errors, such as a missing folder.
// Removes links and does not follow them. Use this instead of std::filesystem::remove_all(): the
// 2.x wheels of libtorch export a broken one, which crashes every program that loads them.
inline void remove_folder(const std::filesystem::path& folder) {
  constexpr int kOpenFolders = 16;
  const auto remove_one = [](const char* path, const struct stat* /*status*/, int /*type*/,
                             struct FTW* /*depth*/) {
    (void)std::remove(path);
    return 0;
  };
  (void)nftw(folder.c_str(), remove_one, kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

// Replaces a file as a whole, by renaming, so that no reader sees half of it; makes its folder.
// Does nothing where that is not possible: for files that can be made again. May be called from any
// thread.
void try_replace_file(const std::filesystem::path& path, const std::string& text);

// A file of clusters/, recipes/ or published/, compiled into the library by
// cmake/SluiceEmbed.cmake.
struct EmbeddedFile {
  std::string_view name;  // without .toml
  std::string_view toml;
};

// Sorted by name.
std::span<const EmbeddedFile> embedded_clusters();
std::span<const EmbeddedFile> embedded_recipes();
std::span<const EmbeddedFile> embedded_published();  // only in the command

}  // namespace sluice::base
