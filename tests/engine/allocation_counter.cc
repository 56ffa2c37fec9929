// These operators are in a file of their own, because a compiler that inlines them into a test
// warns of mismatched calls.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/engine/counters.h"

namespace {

std::atomic<long> count{0};

void* counted(std::size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* counted_or_throw(std::size_t bytes) {
  void* const memory = counted(bytes);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

}  // namespace

namespace sluice::engine {
long allocations() { return count.load(std::memory_order_relaxed); }
}  // namespace sluice::engine

void* operator new(std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
