#include "sluice/sluice.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice::base {
namespace {

namespace fs = std::filesystem;

TEST(SluiceHeader, IncludesEveryPublicHeaderThatNeedsOnlyTheStandardLibrary) {
  const fs::path include = SLUICE_SOURCE_DIR "/include";
  std::stringstream header;
  header << std::ifstream{include / "sluice/sluice.h"}.rdbuf();
  int headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator{include / "sluice"}) {
    const std::string name = fs::relative(entry.path(), include).string();
    if (!entry.is_regular_file()) continue;
    ++headers;
    if (name == "sluice/sluice.h" || name.starts_with("sluice/torch/")) continue;
    EXPECT_NE(header.str().find("#include \"" + name + "\"\n"), std::string::npos) << name;
  }
  EXPECT_LE(headers, 20);
}

TEST(SluiceHeader, GivesTheWholeApi) {
  const Algorithm& ring = *find_algorithm("ring").value();
  const Shape shape = complete_shape(ring, {.ranks = 4}).value();
  EXPECT_TRUE(prove(ring, shape).proven);
  EXPECT_EQ(Selector(Collective::AllReduce, Topology::flat(4), {}).choose(1).shape.ranks, 4);
  EXPECT_EQ(CollectiveOptions{}.type, DataType::F32);
}

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
}  // namespace sluice::base
