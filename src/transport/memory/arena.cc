#include "transport/memory/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/format.h"

namespace sluice::transport {
namespace {

std::size_t page_bytes() {
  static const auto kBytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return kBytes;
}

std::size_t count_for(std::size_t bytes) {
  return std::max<std::size_t>(bytes / page_bytes() + (bytes % page_bytes() != 0 ? 1 : 0), 1);
}

// Of every arena. Its last page has a number that a PageRange can hold.
constexpr std::uint64_t kPages = std::uint64_t{1} << 32;

off_t offset_of(Rank rank, PageRange range) {
  return static_cast<off_t>((static_cast<std::uint64_t>(rank) * kPages + range.first) *
                            page_bytes());
}

Status out_of_memory(std::size_t bytes) {
  return {Code::NoMemory, base::format("cannot allocate {} bytes of shared memory: {}", bytes,
                                       std::strerror(errno))};
}

}  // namespace

std::size_t PageRange::bytes() const { return std::size_t{count} * page_bytes(); }

bool PageRange::fits_an_arena() const { return count > 0 && end() <= kPages; }

Result<base::Fd> create_arena_file(int ranks) {
  base::Fd file{memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  const std::uint64_t pages = static_cast<std::uint64_t>(ranks) * kPages;
  if (!file.open() || ftruncate(file.number(), static_cast<off_t>(pages * page_bytes())) != 0 ||
      fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Status{Code::NoMemory,
                  base::format("cannot create shared memory: {}", std::strerror(errno))};
  }
  return file;
}

PageRange pages_for(std::size_t bytes) { return {0, static_cast<std::uint32_t>(count_for(bytes))}; }

Result<PageRange> Arena::take(std::size_t bytes) {
  const std::size_t pages = count_for(bytes);
  const auto fits = std::find_if(free_.begin(), free_.end(),
                                 [&](const auto& hole) { return hole.second >= pages; });
  if (fits != free_.end()) {
    const PageRange range{fits->first, static_cast<std::uint32_t>(pages)};
    const std::uint32_t rest = fits->second - range.count;
    free_.erase(fits);
    if (rest > 0) free_.emplace(static_cast<std::uint32_t>(range.end()), rest);
    return range;
  }
  if (pages > std::numeric_limits<std::uint32_t>::max() - pages_) {
    errno = EFBIG;
    return out_of_memory(bytes);
  }
  const PageRange range{pages_, static_cast<std::uint32_t>(pages)};
  pages_ = static_cast<std::uint32_t>(range.end());
  return range;
}

void Arena::give_back(PageRange range) {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(rank_, range),
            static_cast<off_t>(range.bytes()));
  auto after = free_.lower_bound(range.first);
  if (after != free_.end() && after->first == range.end()) {
    range.count += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (std::uint64_t{before->first} + before->second == range.first) {
      before->second += range.count;
      return;
    }
  }
  free_.emplace(range.first, range.count);
}

std::byte* map_range(int file, Rank rank, PageRange range) {
  void* const data = mmap(nullptr, range.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file,
                          offset_of(rank, range));
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

void unmap_range(std::byte* data, PageRange range) { munmap(data, range.bytes()); }

}  // namespace sluice::transport
