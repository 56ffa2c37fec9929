// samples.h - arrays with every kind of value and with guard bytes around them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "sluice/types.h"

namespace sluice::kernels {

inline constexpr std::array kDataTypes = {DataType::F32,  DataType::F64, DataType::F16,
                                          DataType::BF16, DataType::I32, DataType::I64,
                                          DataType::U8,   DataType::I8,  DataType::Bool};
inline constexpr std::array kHalfTypes = {DataType::F16, DataType::BF16};

// An array of `count` elements that begins `shift` elements (at most 16) past an aligned address.
// Guard bytes 0xa5 surround it.
class Sample {
 public:
  Sample(DataType type, std::size_t count, std::size_t shift)
      : bytes_{count * size_of(type)}, memory_(bytes_ + 4 * kGuard, kFill) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    first_ = kGuard + (kGuard - address % kGuard) % kGuard + shift * size_of(type);
  }

  Sample(Sample&&) = default;  // a copy would have a different alignment
  Sample& operator=(Sample&&) = default;

  void* data() { return memory_.data() + first_; }
  const void* data() const { return memory_.data() + first_; }
  std::size_t bytes() const { return bytes_; }
  void assign(const Sample& other) { std::memcpy(data(), other.data(), bytes_); }

  bool guards_hold() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < first_ || i >= first_ + bytes_) && memory_[i] != kFill) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr unsigned char kFill = 0xa5;
  std::size_t bytes_;
  std::vector<unsigned char> memory_;
  std::size_t first_ = 0;
};

// Fills half of the elements with ordinary values, a quarter with arbitrary bits, and a quarter
// with zeros, infinities, NaN and denormals.
inline void fill(Sample& sample, DataType type, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto put = [&](std::size_t i, auto value) {
    std::memcpy(static_cast<std::byte*>(sample.data()) + i * sizeof value, &value, sizeof value);
  };
  const std::size_t size = size_of(type);
  if (size == 1) {
    for (std::size_t i = 0; i < sample.bytes(); ++i) {
      const std::uint64_t draw = random();
      put(i, static_cast<std::uint8_t>(draw % 4 == 0 ? 0 : draw >> 8));
    }
    return;
  }
  const int exponent_bits = size == 8 ? 11 : type == DataType::F16 ? 5 : 8;
  const int fraction_bits = static_cast<int>(size * 8) - 1 - exponent_bits;
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  const std::uint64_t sign = std::uint64_t{1} << (size * 8 - 1);
  const std::array<std::uint64_t, 8> special = {0,
                                                sign,
                                                infinity,
                                                infinity | sign,
                                                infinity | 1,
                                                infinity | sign | 3,
                                                1,
                                                (infinity >> 1) | 1};
  for (std::size_t i = 0; i < sample.bytes() / size; ++i) {
    const std::uint64_t draw = random();
    std::uint64_t bits = draw >> 3;
    if (draw % 4 < 2) {  // near one: a middle exponent, any fraction
      const std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
      bits = ((infinity >> 1) & infinity) + (draw >> 60 << fraction_bits) / 4 + fraction;
      bits ^= (draw >> 59 & 1) != 0 ? sign : 0;
    } else if (draw % 4 == 2) {
      bits = special[(draw >> 3) % special.size()];
    }
    switch (size) {
      case 2:
        put(i, static_cast<std::uint16_t>(bits));
        break;
      case 4:
        put(i, static_cast<std::uint32_t>(bits));
        break;
      default:
        put(i, bits);
        break;
    }
  }
}

}  // namespace sluice::kernels
