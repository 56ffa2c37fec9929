#include "engine/proof_cache.h"

#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "base/text.h"

namespace sluice::engine {
namespace {

std::string header_of(const std::string& build) {
  return base::format("Schedules proven by build {} of Sluice; may be deleted.\n", build);
}

std::string hash_line(const std::string& text) {
  return base::format("hash {:016x}\n", XXH3_64bits(text.data(), text.size()));
}

// REQUIRES: the text is from to_hexadecimal(). A hash guards it.
std::string from_hexadecimal(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(kDigits.find(text[i]) << 4U | kDigits.find(text[i + 1]));
  return bytes;
}

}  // namespace

std::optional<std::string> ProofCache::find(const std::string& shape) {
  if (!known_) known_ = load(true);
  const auto known = known_->find(shape);
  return known == known_->end() ? std::nullopt : std::optional{known->second};
}

ProofCache::Known ProofCache::load(bool warns) const {
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
  Known shapes;
  for (std::size_t at = header.size(); at < hash_begin;) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    const std::size_t tab = std::min(line.find('\t'), line.size());
    shapes[line.substr(0, tab)] =
        from_hexadecimal(std::string_view{line}.substr(tab == line.size() ? tab : tab + 1));
    at = end + 1;
  }
  return shapes;
}

void ProofCache::add(const std::string& shape, const std::string& marks) {
  if (path_.empty()) return;
  Known shapes = load(false);  // another job may have added to it
  shapes[shape] = marks;
  if (known_) known_->insert_or_assign(shape, marks);
  std::string text = header_of(build_);
  for (const auto& [each, own] : shapes) {
    text += each;
    if (!own.empty()) text += '\t' + base::to_hexadecimal(std::as_bytes(std::span{own}));
    text += '\n';
  }
  text += hash_line(text);
  base::try_replace_file(path_, text);
}

}  // namespace sluice::engine
