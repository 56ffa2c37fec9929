// arena.h - all the shared memory of one rank: an anonymous file, divided into ranges of pages.
//
// The file has no name and disappears with the last process that holds it. It only grows; a seal
// prevents shrinking, so a peer cannot fault on a mapped range. Released pages return to the system
// at once, even if a peer still maps them. A rank has one file for all its blocks: peers receive it
// once, when they join, and map any range of it without a request.
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/file.h"
#include "sluice/status.h"

namespace sluice::transport {

struct PageRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  // Never 0 for a range of at least one page.
  std::uint64_t id() const { return std::uint64_t{first} << 32 | count; }
  static PageRange from_id(std::uint64_t id) {
    return {static_cast<std::uint32_t>(id >> 32), static_cast<std::uint32_t>(id)};
  }
  std::uint64_t end() const { return std::uint64_t{first} + count; }
  std::size_t bytes() const;
};

class Arena {
 public:
  static Result<Arena> create();

  int fd() const { return file_.number(); }

  // Allocates zeroed pages for at least that many bytes; at least one page.
  Result<PageRange> take(std::size_t bytes);
  void give_back(PageRange range);

 private:
  explicit Arena(base::Fd file) : file_{std::move(file)} {}

  base::Fd file_;
  // The first page and the count of each hole. Holes are never adjacent.
  std::map<std::uint32_t, std::uint32_t> free_;
  std::uint32_t pages_ = 0;
};

// Null when the range cannot be mapped; errno has the reason.
std::byte* map_range(int file, PageRange range);
void unmap_range(std::byte* data, PageRange range);

}  // namespace sluice::transport
