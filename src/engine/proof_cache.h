// proof_cache.h - a file of the shapes that a build has proven, in the user's cache folder.
//
// The file is text: a line with the build, a line for each shape, and a hash of these lines. The
// line of a schedule from a file (schedule_file.h) also has its marks, in hexadecimal. The file is
// replaced by renaming, so a reader never sees half of it. If two jobs add a shape at the same
// time, one of the two may be lost; it is proven again at the next start.
// Thread-safety: one thread at a time.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace sluice::engine {

class ProofCache {
 public:
  // No path: nothing is kept.
  ProofCache(std::filesystem::path path, std::string build)
      : path_{std::move(path)}, build_{std::move(build)} {}

  // The marks of a shape that is proven. Logs a warning if the file cannot be used: it is damaged,
  // or of another build.
  std::optional<std::string> find(const std::string& shape);
  // Does nothing where the file cannot be written. REQUIRES: the shape is one line without a tab.
  void add(const std::string& shape, const std::string& marks);

 private:
  using Known = std::map<std::string, std::string>;  // shapes and their marks

  Known load(bool warns) const;

  std::filesystem::path path_;
  std::string build_;
  std::optional<Known> known_;
};

}  // namespace sluice::engine
