// arena.h - the shared memory of the ranks of a node: one anonymous file, in which each rank has an
// arena, divided into ranges of pages.
//
// The file has no name and disappears with the last process that holds it. It is so long that no
// arena ever fills, and takes memory only for pages that were written. Seals prevent a change of
// its length, so a peer cannot fault on a mapped range. Released pages return to the system at
// once, even if a peer still maps them. Every rank has the file, so it maps any range of any rank
// without a request. Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/file.h"
#include "sluice/schedule.h"
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
  bool fits_an_arena() const;
  std::size_t bytes() const;
};

// The file of a node with that many ranks.
Result<base::Fd> create_arena_file(int ranks);
// The first pages of an arena, for at least that many bytes.
PageRange pages_for(std::size_t bytes);

class Arena {
 public:
  // The arena of a rank, of which the first pages are taken. The file must outlive it.
  Arena(int file, Rank rank, std::uint32_t taken) : file_{file}, rank_{rank}, pages_{taken} {}

  // Allocates zeroed pages for at least that many bytes; at least one page.
  Result<PageRange> take(std::size_t bytes);
  void give_back(PageRange range);

 private:
  int file_;
  Rank rank_;
  // The first page and the count of each hole. Holes are never adjacent.
  std::map<std::uint32_t, std::uint32_t> free_;
  std::uint32_t pages_;
};

// Null when the range cannot be mapped; errno has the reason.
std::byte* map_range(int file, Rank rank, PageRange range);
void unmap_range(std::byte* data, PageRange range);

}  // namespace sluice::transport
