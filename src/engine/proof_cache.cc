#include "engine/proof_cache.h"

#include <xxhash.h>

#include <fstream>
#include <iterator>

#include "base/file.h"
#include "base/format.h"
#include "base/log.h"

namespace sluice::engine {
namespace {

std::string header_of(const std::string& build) {
  return base::format("Schedules proven by build {} of Sluice; may be deleted.\n", build);
}

std::string hash_line(const std::string& text) {
  return base::format("hash {:016x}\n", XXH3_64bits(text.data(), text.size()));
}

}  // namespace

bool ProofCache::contains(const std::string& shape) {
  if (!known_) known_ = load(true);
  return known_->contains(shape);
}

std::set<std::string> ProofCache::load(bool warns) const {
  std::ifstream file{path_};
  if (path_.empty() || !file) return {};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const std::size_t hash_begin = text.rfind("hash ");
  const std::string header = header_of(build_);
  const bool is_whole = hash_begin != std::string::npos &&
                        text.substr(hash_begin) == hash_line(text.substr(0, hash_begin));
  if (!is_whole || !text.starts_with(header)) {
    if (warns) {
      base::log_warning(base::format("{} is {}: it is ignored, and the schedules are proven again",
                                     path_.string(),
                                     is_whole ? "of another build of Sluice" : "damaged"));
    }
    return {};
  }
  std::set<std::string> shapes;
  for (std::size_t at = header.size(); at < hash_begin;) {
    const std::size_t end = text.find('\n', at);
    shapes.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return shapes;
}

void ProofCache::add(const std::string& shape) {
  if (path_.empty()) return;
  std::set<std::string> shapes = load(false);  // another job may have added to it
  shapes.insert(shape);
  if (known_) known_->insert(shape);
  std::string text = header_of(build_);
  for (const std::string& each : shapes) text += each + '\n';
  text += hash_line(text);
  base::try_replace_file(path_, text);
}

}  // namespace sluice::engine
