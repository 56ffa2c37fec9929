#include "tests/kernels/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace sluice::kernels::reference {
namespace {

struct Format {
  int fraction_bits;
  int least_exponent;  // of a normal number
  int most_exponent;
};

Format format_of(DataType type) {
  return type == DataType::F16 ? Format{10, -14, 15} : Format{7, -126, 127};
}

std::uint16_t infinity_bits(const Format& format) {
  const int exponents = format.most_exponent - format.least_exponent + 2;
  return static_cast<std::uint16_t>(exponents << format.fraction_bits);
}

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

// Of integers by repeated addition, which cannot overflow as a product in a wider type could.
template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    T product = 0;
    for (int bit = 0; bit < std::numeric_limits<std::make_unsigned_t<T>>::digits; ++bit) {
      if ((static_cast<std::make_unsigned_t<T>>(b) >> bit & 1U) != 0) product = add(product, a);
      a = add(a, a);
    }
    return product;
  } else {
    return a * b;
  }
}

template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  if (op == ReduceOp::Sum || op == ReduceOp::Mean) return add(a, b);
  if (op == ReduceOp::Product) return multiply(a, b);
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::And) return static_cast<T>(a & b);
    if (op == ReduceOp::Or) return static_cast<T>(a | b);
    if (op == ReduceOp::Xor) return static_cast<T>(a ^ b);
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  }
  if (op == ReduceOp::Min) return is_less(b, a) ? b : a;
  return is_less(a, b) ? b : a;
}

template <class T>
T finish(const Reduction& reduction, T value) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(value / reduction.divisor);
  const T factor = static_cast<T>(reduction.factor);
  return factor == 1 ? value : value * factor;
}

// load(array, i) returns a value to compute with; save(i, value) stores the result.
template <class Load, class Save>
void reduce_with(const Reduction& reduction, std::span<const void* const> sources,
                 std::size_t count, Load load, Save save) {
  for (std::size_t i = 0; i < count; ++i) {
    auto value = load(sources[0], i);
    for (const void* source : sources.subspan(1)) {
      value = combine(reduction.op, value, load(source, i));
    }
    save(i, finish(reduction, value));
  }
}

template <class T>
void reduce_plain(const Reduction& reduction, void* target, std::span<const void* const> sources,
                  std::size_t count) {
  reduce_with(
      reduction, sources, count,
      [](const void* source, std::size_t i) { return static_cast<const T*>(source)[i]; },
      [&](std::size_t i, T value) { static_cast<T*>(target)[i] = value; });
}

double element(DataType type, const void* from, std::size_t i) {
  if (type == DataType::F32) return static_cast<const float*>(from)[i];
  if (type == DataType::F64) return static_cast<const double*>(from)[i];
  return decode(type, static_cast<const std::uint16_t*>(from)[i]);
}

}  // namespace

float decode(DataType type, std::uint16_t bits) {
  const Format format = format_of(type);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits & 0x7fff) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  if (exponent == infinity_bits(format) >> format.fraction_bits) {
    if (fraction == 0) return static_cast<float>(sign * std::numeric_limits<double>::infinity());
    // The payload moves up. Hardware makes an f16 NaN quiet; a bf16 NaN keeps its bits.
    std::uint32_t nan = 0x7f800000u | static_cast<std::uint32_t>(fraction)
                                          << (23 - format.fraction_bits);
    if (type == DataType::F16) nan |= 0x400000u;
    return std::bit_cast<float>(nan | (bits & 0x8000u) << 16);
  }
  const int whole = exponent == 0 ? 0 : 1 << format.fraction_bits;
  const int power = std::max(exponent, 1) - 1 + format.least_exponent - format.fraction_bits;
  return static_cast<float>(sign * std::ldexp(whole + fraction, power));
}

std::uint16_t encode(DataType type, float value) {
  const Format format = format_of(type);
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const std::uint16_t infinity = infinity_bits(format);
  if (std::isnan(value)) {
    const std::uint32_t payload = std::bit_cast<std::uint32_t>(value) & 0x7fffffu;
    const std::uint32_t kept = payload >> (23 - format.fraction_bits);
    return static_cast<std::uint16_t>(sign | infinity | kept | 1u << (format.fraction_bits - 1));
  }
  const double size = std::fabs(static_cast<double>(value));
  if (size == 0) return sign;
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | infinity);
  const int exponent = std::max(std::ilogb(size), format.least_exponent);
  // In units of the last place; the default rounding mode is to nearest even. A carry out of the
  // fraction adds one to the exponent and makes the fraction zero, which is right.
  const auto units =
      static_cast<int>(std::nearbyint(std::ldexp(size, format.fraction_bits - exponent)));
  const int bits = ((exponent - format.least_exponent) << format.fraction_bits) + units;
  return static_cast<std::uint16_t>(sign | std::min<int>(bits, infinity));
}

void reduce(const Reduction& reduction, void* target, std::span<const void* const> sources,
            std::size_t count) {
  const DataType type = reduction.type;
  switch (type) {
    case DataType::F32:
      return reduce_plain<float>(reduction, target, sources, count);
    case DataType::F64:
      return reduce_plain<double>(reduction, target, sources, count);
    case DataType::I32:
      return reduce_plain<std::int32_t>(reduction, target, sources, count);
    case DataType::I64:
      return reduce_plain<std::int64_t>(reduction, target, sources, count);
    case DataType::U8:
      return reduce_plain<std::uint8_t>(reduction, target, sources, count);
    case DataType::I8:
      return reduce_plain<std::int8_t>(reduction, target, sources, count);
    case DataType::Bool:
      return reduce_with(
          reduction, sources, count,
          [](const void* source, std::size_t i) {
            return static_cast<std::uint8_t>(static_cast<const std::uint8_t*>(source)[i] != 0);
          },
          [&](std::size_t i, std::uint8_t value) {
            static_cast<std::uint8_t*>(target)[i] = value;
          });
    case DataType::F16:
    case DataType::BF16:
      break;
  }
  reduce_with(
      reduction, sources, count,
      [&](const void* source, std::size_t i) {
        return decode(type, static_cast<const std::uint16_t*>(source)[i]);
      },
      [&](std::size_t i, float value) {
        static_cast<std::uint16_t*>(target)[i] = encode(type, value);
      });
}

ConvertCounts count_narrowed(DataType type, const std::vector<float>& from, float scale) {
  ConvertCounts counts;
  for (const float value : from) {
    const float after = decode(type, encode(type, value * scale));
    counts.nan += std::isnan(after);
    counts.inf += std::isinf(after) && std::isinf(value);
    counts.overflow += std::isinf(after) && std::isfinite(value);
  }
  return counts;
}

double norm(DataType type, const void* chunk, std::size_t count, bool square) {
  std::array<double, 32> sums{};
  for (std::size_t i = 0; i < count; ++i) {
    const double value = element(type, chunk, i);
    sums[i % 32] += square ? value * value : std::fabs(value);
  }
  for (std::size_t j = 0; j < 16; ++j) sums[j] += sums[j + 16];
  for (std::size_t j = 0; j < 8; ++j) sums[j] += sums[j + 8];
  for (std::size_t j = 0; j < 4; ++j) sums[j] += sums[j + 4];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

}  // namespace sluice::kernels::reference
