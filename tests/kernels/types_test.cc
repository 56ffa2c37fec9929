#include "sluice/types.h"

#include <gtest/gtest.h>

namespace sluice::kernels {
namespace {

TEST(Types, HaveSizesAndNames) {
  EXPECT_EQ(size_of(DataType::F32), sizeof(float));
  EXPECT_EQ(size_of(DataType::F64), sizeof(double));
  EXPECT_EQ(size_of(DataType::F16), 2u);
  EXPECT_EQ(size_of(DataType::BF16), 2u);
  EXPECT_EQ(size_of(DataType::I32), 4u);
  EXPECT_EQ(size_of(DataType::I64), 8u);
  EXPECT_EQ(name(DataType::BF16), "bf16");
  EXPECT_EQ(name(ReduceOp::Mean), "mean");
}

}  // namespace
}  // namespace sluice::kernels
