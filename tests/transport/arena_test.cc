#include "transport/memory/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice::transport {
namespace {

std::int64_t used_blocks(int file) {
  struct stat now {};
  fstat(file, &now);
  return now.st_blocks;
}

TEST(Arena, TakenRangesNeverOverlap) {
  const base::Fd file = create_arena_file(1).value();
  Arena arena{file.number(), 0, 0};
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
  const std::size_t bytes = taken_times.size() * pages_for(1).bytes();
  EXPECT_EQ(arena.take(bytes).value().first, 0U);
}

TEST(Arena, PagesGivenBackAreZeroAndUseNoMemory) {
  const base::Fd file = create_arena_file(3).value();
  Arena arena{file.number(), 2, 0};
  const PageRange range = arena.take(std::size_t{1} << 20).value();
  std::byte* const data = map_range(file.number(), 2, range);
  ASSERT_NE(data, nullptr);
  std::fill_n(data, range.bytes(), std::byte{0xab});
  arena.give_back(range);
  EXPECT_EQ(used_blocks(file.number()), 0);
  const PageRange again = arena.take(std::size_t{1} << 20).value();
  EXPECT_EQ(again.id(), range.id());
  EXPECT_EQ(data[0], std::byte{0});
  EXPECT_EQ(data[range.bytes() - 1], std::byte{0});
  unmap_range(data, range);
}

// Rank 1 takes the page that rank 0 has, and the last page of the largest node.
TEST(Arena, TheArenasOfANodeDoNotOverlap) {
  constexpr int kRanks = 4096;
  const base::Fd file = create_arena_file(kRanks).value();
  std::vector<std::byte*> pages;
  for (const Rank rank : {0, 1, kRanks - 1}) {
    for (const std::uint32_t first : {0U, ~0U}) {
      pages.push_back(map_range(file.number(), rank, {first, 1}));
      ASSERT_NE(pages.back(), nullptr);
      EXPECT_EQ(*pages.back(), std::byte{0});
      *pages.back() = static_cast<std::byte>(pages.size());
    }
  }
  for (std::size_t i = 0; i < pages.size(); ++i) {
    EXPECT_EQ(*pages[i], static_cast<std::byte>(i + 1));
    unmap_range(pages[i], {0, 1});
  }
}

TEST(Arena, TakesTheFirstPagesOnlyOnce) {
  const base::Fd file = create_arena_file(1).value();
  const PageRange first = pages_for(10000);
  Arena arena{file.number(), 0, first.count};
  EXPECT_GE(first.bytes(), 10000U);
  EXPECT_EQ(arena.take(1).value().first, first.end());
}

TEST(Arena, ItsFileKeepsItsLength) {
  const base::Fd file = create_arena_file(2).value();
  EXPECT_NE(ftruncate(file.number(), 0), 0);
}

TEST(Arena, AnErrorHasTheNumberOfBytes) {
  const base::Fd file = create_arena_file(1).value();
  Arena arena{file.number(), 0, 0};
  const auto range = arena.take(std::size_t{1} << 60);
  ASSERT_FALSE(range.ok());
  EXPECT_EQ(range.status().code(), Code::NoMemory);
  EXPECT_NE(range.status().message().find("1152921504606846976 bytes"), std::string::npos);
}

}  // namespace
}  // namespace sluice::transport
