// types.h - element types, elements in memory, reduction operations, and where optimizers apply the
// learning rate.
//
// docs/types.md has the legal pairs of types and operations, and what they compute.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>

namespace sluice {

enum class DataType : std::uint8_t {
  F32,
  F64,
  F16,   // IEEE binary16
  BF16,  // the upper half of an F32
  I32,
  I64,
  U8,
  I8,
  Bool,  // one byte: 0 is false, any other value is true
};

enum class ReduceOp : std::uint8_t {
  Sum,
  Mean,  // the sum divided by the number of ranks
  Min,
  Max,
  Product,
  And,  // these three: of every bit of an integer, or of truth values
  Or,
  Xor,
};

// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::F32:
    case DataType::I32:
      return 4;
    case DataType::F64:
    case DataType::I64:
      return 8;
    case DataType::F16:
    case DataType::BF16:
      return 2;
    case DataType::U8:
    case DataType::I8:
    case DataType::Bool:
      return 1;
  }
  return 0;
}

// The C++ types that hold elements of one type. F16 and BF16 have none.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
    std::same_as<T, std::uint8_t> || std::same_as<T, std::int8_t> || std::same_as<T, bool>;

template <Element T>
constexpr DataType data_type_of() {
  if constexpr (std::same_as<T, float>) return DataType::F32;
  if constexpr (std::same_as<T, double>) return DataType::F64;
  if constexpr (std::same_as<T, std::int32_t>) return DataType::I32;
  if constexpr (std::same_as<T, std::int64_t>) return DataType::I64;
  if constexpr (std::same_as<T, std::uint8_t>) return DataType::U8;
  if constexpr (std::same_as<T, std::int8_t>) return DataType::I8;
  return DataType::Bool;
}

// Elements in the caller's memory, with their type: what a collective works on. Void is `void`, or
// `const void` for elements that are only read.
template <class Void>
class BasicElements {
 public:
  constexpr BasicElements(Void* data, std::size_t count, DataType type)
      : data_{data}, count_{count}, type_{type} {}

  // From a span, or from anything that a span is made of: an array or a vector.
  template <std::ranges::contiguous_range Range,
            class T = std::remove_reference_t<std::ranges::range_reference_t<Range>>>
  requires std::ranges::sized_range<Range> && std::ranges::borrowed_range<Range> &&
      Element<std::remove_const_t<T>> && std::convertible_to<T*, Void*>
  constexpr BasicElements(Range&& range)  // NOLINT: hides no copy, elements are no range
      : BasicElements{std::ranges::data(range), static_cast<std::size_t>(std::ranges::size(range)),
                      data_type_of<std::remove_const_t<T>>()} {}

  template <std::same_as<void> Other>
  requires std::is_const_v<Void>
  constexpr BasicElements(const BasicElements<Other>& elements)
      : BasicElements{elements.data(), elements.count(), elements.type()} {}

  constexpr Void* data() const { return data_; }
  constexpr std::size_t count() const { return count_; }
  constexpr DataType type() const { return type_; }
  constexpr std::size_t bytes() const { return count_ * size_of(type_); }

 private:
  Void* data_;
  std::size_t count_;
  DataType type_;
};

using Elements = BasicElements<void>;
using ConstElements = BasicElements<const void>;

// The name of a type in commands and messages: "f32", "bf16".
constexpr std::string_view name(DataType type) {
  switch (type) {
    case DataType::F32:
      return "f32";
    case DataType::F64:
      return "f64";
    case DataType::F16:
      return "f16";
    case DataType::BF16:
      return "bf16";
    case DataType::I32:
      return "i32";
    case DataType::I64:
      return "i64";
    case DataType::U8:
      return "u8";
    case DataType::I8:
      return "i8";
    case DataType::Bool:
      return "bool";
  }
  return "";
}

// The name of an operation in commands and messages: "sum", "mean".
constexpr std::string_view name(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return "sum";
    case ReduceOp::Mean:
      return "mean";
    case ReduceOp::Min:
      return "min";
    case ReduceOp::Max:
      return "max";
    case ReduceOp::Product:
      return "product";
    case ReduceOp::And:
      return "and";
    case ReduceOp::Or:
      return "or";
    case ReduceOp::Xor:
      return "xor";
  }
  return "";
}

// Whether elements of the type can be combined by the operation. Bits are combined in integers and
// truth values, and all else in numbers. A mean of U8 or I8 is excluded: the sum of as few as two
// elements would wrap around before the division.
constexpr bool is_legal(DataType type, ReduceOp op) {
  const bool is_float = type == DataType::F32 || type == DataType::F64 || type == DataType::F16 ||
                        type == DataType::BF16;
  switch (op) {
    case ReduceOp::And:
    case ReduceOp::Or:
    case ReduceOp::Xor:
      return !is_float;
    case ReduceOp::Mean:
      return is_float || type == DataType::I32 || type == DataType::I64;
    default:
      return type != DataType::Bool;
  }
}

// Where a momentum optimizer applies the learning rate (u: velocity, w: weights, d: gradient).
enum class LearningRateMode : std::uint8_t {
  Outside,  // u = m u + d, w -= lr u
  Folded,   // u = m u + lr d, w -= u: each gradient in u keeps the learning rate of its own step
};

}  // namespace sluice
