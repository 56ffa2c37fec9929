#include "libtorch/scalar_type.h"

namespace sluice::libtorch {

std::optional<DataType> data_type(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat:
      return DataType::F32;
    case torch::kDouble:
      return DataType::F64;
    case torch::kHalf:
      return DataType::F16;
    case torch::kBFloat16:
      return DataType::BF16;
    case torch::kInt:
      return DataType::I32;
    case torch::kLong:
      return DataType::I64;
    default:
      return std::nullopt;
  }
}

}  // namespace sluice::libtorch
