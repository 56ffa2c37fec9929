#include "transport/memory/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice::transport {
namespace {

std::int64_t file_bytes(int fd) {
  struct stat now {};
  fstat(fd, &now);
  return now.st_size;
}

TEST(Arena, TakenRangesNeverOverlap) {
  Arena arena = Arena::create().value();
  std::mt19937 random{7};
  std::vector<PageRange> taken;
  std::vector<int> taken_times;  // by page; a naive record
  for (int round = 0; round < 4000; ++round) {
    if (taken.empty() || random() % 2 == 0) {
      const PageRange range = arena.take(random() % 40000).value();
      ASSERT_GE(range.count, 1U);
      if (taken_times.size() < range.end()) taken_times.resize(range.end());
      for (std::uint64_t page = range.first; page < range.end(); ++page)
        ASSERT_EQ(taken_times[page]++, 0);
      taken.push_back(range);
    } else {
      const std::size_t which = random() % taken.size();
      for (std::uint64_t page = taken[which].first; page < taken[which].end(); ++page)
        --taken_times[page];
      arena.give_back(taken[which]);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const PageRange& range : taken) arena.give_back(range);
  // All pages are one hole again, so the arena can give all of them without growing.
  const std::int64_t bytes = file_bytes(arena.fd());
  EXPECT_EQ(arena.take(static_cast<std::size_t>(bytes)).value().first, 0U);
  EXPECT_EQ(file_bytes(arena.fd()), bytes);
}

TEST(Arena, PagesGivenBackAreZeroAndUseNoMemory) {
  Arena arena = Arena::create().value();
  const PageRange range = arena.take(std::size_t{1} << 20).value();
  std::byte* const data = map_range(arena.fd(), range);
  ASSERT_NE(data, nullptr);
  std::fill_n(data, range.bytes(), std::byte{0xab});
  arena.give_back(range);
  struct stat now {};
  fstat(arena.fd(), &now);
  EXPECT_EQ(now.st_blocks, 0);
  const PageRange again = arena.take(std::size_t{1} << 20).value();
  EXPECT_EQ(again.id(), range.id());
  EXPECT_EQ(data[0], std::byte{0});
  EXPECT_EQ(data[range.bytes() - 1], std::byte{0});
  unmap_range(data, range);
}

TEST(Arena, CannotShrink) {
  Arena arena = Arena::create().value();
  (void)arena.take(100000).value();
  EXPECT_NE(ftruncate(arena.fd(), 0), 0);
}

TEST(Arena, AnErrorHasTheNumberOfBytes) {
  Arena arena = Arena::create().value();
  const auto range = arena.take(std::size_t{1} << 60);
  ASSERT_FALSE(range.ok());
  EXPECT_EQ(range.status().code(), Code::NoMemory);
  EXPECT_NE(range.status().message().find("1152921504606846976 bytes"), std::string::npos);
}

}  // namespace
}  // namespace sluice::transport
