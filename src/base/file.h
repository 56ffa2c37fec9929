// file.h - file descriptors, folders, and the files that are compiled into the library.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace sluice::base {

// A file descriptor, closed by its owner.
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

// Removes a folder and its contents as far as it can; a missing folder is no error. Links are
// removed, not followed. Use this instead of std::filesystem::remove_all(): libtorch's 2.x wheels
// export a broken one, which crashes every program that loads them.
void remove_folder(const std::filesystem::path& folder);

// A file of clusters/ or recipes/, compiled into the library by cmake/SluiceEmbed.cmake.
struct EmbeddedFile {
  std::string_view name;  // without .toml
  std::string_view toml;
};

// In order of names.
std::span<const EmbeddedFile> embedded_clusters();
std::span<const EmbeddedFile> embedded_recipes();

}  // namespace sluice::base
