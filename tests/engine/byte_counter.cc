// Replaces operator new by one that counts the bytes in use. In a file of its own, because a
// compiler that inlines these operators into a test warns of mismatched calls.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/engine/counters.h"

namespace {

std::atomic<long> used{0};
std::atomic<long> most{0};

void* counted(std::size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) return nullptr;
  const long now = used.fetch_add(static_cast<long>(malloc_usable_size(memory))) +
                   static_cast<long>(malloc_usable_size(memory));
  long before = most.load();
  while (before < now && !most.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void* counted_or_throw(std::size_t bytes) {
  void* const memory = counted(bytes);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) used.fetch_sub(static_cast<long>(malloc_usable_size(memory)));
  std::free(memory);
}

}  // namespace

namespace sluice::engine {
long bytes_in_use() { return used.load(); }
long most_bytes_in_use() { return most.load(); }
void forget_most_bytes() { most.store(used.load()); }
}  // namespace sluice::engine

void* operator new(std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return counted_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
