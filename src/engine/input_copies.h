// input_copies.h - memory for the inputs of collectives whose caller keeps input and output apart.
//
// A collective works in place, so it needs a copy of an input that must not change and does not fit
// into the output. Memory is used again, so that a steady state allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace sluice::engine {

class InputCopies {
 public:
  // Memory of at least that many bytes, until release().
  std::byte* acquire(std::size_t bytes) {
    const auto free = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
      return !copy.used && copy.bytes >= bytes;
    });
    Copy& copy = free != copies_.end()
                     ? *free
                     : copies_.emplace_back(std::make_unique<std::byte[]>(bytes), bytes);
    copy.used = true;
    return copy.data.get();
  }

  void release(const std::byte* data) {
    for (Copy& copy : copies_) copy.used = copy.used && copy.data.get() != data;
  }

 private:
  struct Copy {
    Copy(std::unique_ptr<std::byte[]> memory, std::size_t size)
        : data{std::move(memory)}, bytes{size} {}
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes;
    bool used = false;
  };
  std::vector<Copy> copies_;
};

}  // namespace sluice::engine
