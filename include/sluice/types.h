// types.h - element types, reduction operations, and where optimizers apply the learning rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

enum class DataType : std::uint8_t {
  F32,
  F64,
  F16,   // IEEE binary16
  BF16,  // the upper half of an F32
  I32,
  I64,
};

enum class ReduceOp : std::uint8_t {
  Sum,
  Mean,  // the sum divided by the number of ranks
  Min,
  Max,
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
  }
  return 0;
}

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
  }
  return "";
}

// Where a momentum optimizer applies the learning rate (u: velocity, w: weights, d: gradient).
enum class LearningRateMode : std::uint8_t {
  Outside,  // u = m u + d, w -= lr u
  Folded,   // u = m u + lr d, w -= u: each gradient in u keeps the learning rate of its own step
};

}  // namespace sluice
