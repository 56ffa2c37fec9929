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

Status out_of_memory(std::size_t bytes) {
  return {Code::NoMemory, base::format("cannot allocate {} bytes of shared memory: {}", bytes,
                                       std::strerror(errno))};
}

}  // namespace

std::size_t PageRange::bytes() const { return std::size_t{count} * page_bytes(); }

Result<Arena> Arena::create() {
  base::Fd file{memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file.open() || fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return Status{Code::NoMemory,
                  base::format("cannot create shared memory: {}", std::strerror(errno))};
  }
  return Arena{std::move(file)};
}

Result<PageRange> Arena::take(std::size_t bytes) {
  const std::size_t pages =
      std::max<std::size_t>(bytes / page_bytes() + (bytes % page_bytes() != 0 ? 1 : 0), 1);
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
  if (ftruncate(file_.number(), static_cast<off_t>(range.end() * page_bytes())) != 0)
    return out_of_memory(bytes);
  pages_ = static_cast<std::uint32_t>(range.end());
  return range;
}

void Arena::give_back(PageRange range) {
  fallocate(file_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(range.first * page_bytes()), static_cast<off_t>(range.bytes()));
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

std::byte* map_range(int file, PageRange range) {
  void* const data = mmap(nullptr, range.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file,
                          static_cast<off_t>(range.first * page_bytes()));
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

void unmap_range(std::byte* data, PageRange range) { munmap(data, range.bytes()); }

}  // namespace sluice::transport
