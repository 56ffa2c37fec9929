// proof_cache.h - a file of the shapes that a build has proven, in the user's cache folder.
//
// The file is text: a line with the build, a line for each shape, and a hash of these lines. It is
// replaced by renaming, so a reader never sees half of it. If two jobs add a shape at the same
// time, one of the two may be lost; it is proven again at the next start.
// Thread-safety: one thread at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace sluice::engine {

class ProofCache {
 public:
  // No path: nothing is kept.
  ProofCache(std::filesystem::path path, std::string build)
      : path_{std::move(path)}, build_{std::move(build)} {}

  // Logs a warning if the file cannot be used: it is damaged, or of another build.
  bool contains(const std::string& shape);
  // Does nothing where the file cannot be written. REQUIRES: the shape is one line.
  void add(const std::string& shape);

 private:
  std::set<std::string> load(bool warns) const;

  std::filesystem::path path_;
  std::string build_;
  std::optional<std::set<std::string>> known_;
};

}  // namespace sluice::engine
